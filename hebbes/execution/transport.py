"""Transport: how the dispatch reaches its workers. It could be threads, processes or other machines.

A worker does one call after another, each `function(host, *arguments)`. The host is what calls share, such as
simulators. It is made where the calls are done.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from hebbes.contracts.engine import EngineError
from hebbes.contracts.errors import describe_with_traceback


class Host(Protocol):
    """What the calls of one or several workers share."""

    def abandon(self) -> None:
        """Makes the calls of this host, running and later ones, end soon. What they return does not matter."""

    def close(self) -> None:
        """Frees what the host holds. No call is running."""


@dataclass(frozen=True)
class Loss:
    """What a worker that is gone answers."""

    reason: str
    is_blameless: bool
    """Whether the worker's call has nothing to do with it, as if an operator killed the worker."""


class Worker(Protocol):
    """One worker. Its first answer is None and says that it runs. Then it answers each call."""

    def send(self, function: Callable[..., Any], arguments: Sequence[Any]) -> None:
        """Sends a call. If the worker is gone, its next answer says so."""

    def receive(self) -> Any:
        """The answer that has arrived: what the call returned, the exception that it raised, or a Loss."""


OwnWorker = TypeVar("OwnWorker", bound=Worker)
"""The transport's own class of workers."""


class Transport(Protocol[OwnWorker]):
    """Makes workers and waits for them."""

    workers_per_host: int
    """Number of workers that share a host."""

    def __init__(self, make_host: Callable[[], Host], num_workers: int) -> None: ...

    @property
    def num_workers(self) -> int:
        """The largest number of workers at a time. It may change, and results never depend on it."""

    def start_worker(self) -> OwnWorker:
        """A new worker, which may take long to give its first answer."""

    def wait(self, workers: Sequence[OwnWorker], timeout: float | None) -> Collection[OwnWorker]:
        """Waits until some of these workers have an answer, and returns them; none after `timeout` seconds."""

    def end_worker(self, worker: OwnWorker) -> None:
        """Ends a worker, even if it hangs, and frees what a lost one leaves."""

    def close(self) -> None:
        """Ends all workers soon, whatever they do. Later, new ones may be started. Calling it twice is harmless."""


def call_function(host: Host, function: Callable[..., Any], arguments: Sequence[Any]) -> Any:
    """What the call returns, or an EngineError with the traceback of what it raised."""
    try:
        return function(host, *arguments)
    except Exception as error:  # a user's simulator may raise anything; the dispatch raises it again
        failure = EngineError(describe_with_traceback(error))
        failure.__cause__ = error
        return failure
