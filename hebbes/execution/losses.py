"""Losses of workers that no job is to blame for: how many of them end the dispatch."""

from hebbes.contracts.engine import EngineError

MAX_DEATHS = 5
"""Number of workers lost by no job's fault, without an answer in between, that ends the dispatch.

It is higher if there are more workers, because one cause may kill all of them at once."""


class DeathCount:
    """Counts the workers that were lost by no job's fault since the last answer."""

    def __init__(self) -> None:
        self._deaths = 0

    def add(self) -> None:
        """A worker was lost."""
        self._deaths += 1

    def reset(self) -> None:
        """An answer has come."""
        self._deaths = 0

    def check(self, num_workers: int, reason: str) -> None:
        """EngineError if there are too many for this number of workers. `reason` is that of the last loss."""
        if self._deaths >= max(MAX_DEATHS, num_workers + 1):
            raise EngineError(
                f"{self._deaths} workers were lost without an answer in between, the last one: {reason}; "
                "memory may be short, or the machine overloaded (fewer --threads need less memory)"
            )
