"""Losses of workers that no job is to blame for: how many of them end the dispatch."""

from hebbes.contracts.engine import EngineError

MAX_DEATHS = 5
"""Number of workers lost by no job's fault, without an answer in between, that ends the dispatch.

It is higher if there are more workers, because one cause may kill all of them at once."""


def check_deaths(count: int, num_workers: int, reason: str) -> None:
    """EngineError for too many losses without an answer in between. `reason` is that of the last one."""
    if count >= max(MAX_DEATHS, num_workers + 1):
        raise EngineError(
            f"{count} workers were lost without an answer in between, the last one: {reason}; "
            "memory may be short, or the machine overloaded (fewer --threads need less memory)"
        )
