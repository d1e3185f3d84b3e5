"""Losses of workers that no job is to blame for: how many of them end the dispatch."""

from hebbes.contracts.engine import EngineError, StartError
from hebbes.execution.transport import Loss

MAX_DEATHS = 5
"""Number of workers lost by no job's fault, without an answer in between, that ends the dispatch.

It is higher if there are more workers, because one cause may kill all of them at once."""


def check_deaths(count: int, num_workers: int, last: Loss, *, has_started: bool) -> None:
    """EngineError for too many losses without an answer in between, the last of a worker that had started or not."""
    if count >= max(MAX_DEATHS, num_workers + 1):
        raise (StartError if last.ended_itself and not has_started else EngineError)(
            f"{count} workers were lost without an answer in between, the last one: {last.reason}; "
            "memory may be short, or the machine overloaded (fewer --threads need less memory)"
        )
