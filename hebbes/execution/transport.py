"""Transport: how the dispatch reaches its workers. They could be threads, processes or other machines.

A worker does calls, each `function(host, *arguments)`. The host is what the calls of one worker share, such as
simulators. It is made where the calls are done.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeAlias, TypeVar

from hebbes.contracts.engine import EngineError
from hebbes.contracts.errors import ForeignExitError, convert_foreign_exits, describe_with_traceback


class Host(Protocol):
    """What the calls of a worker share."""

    def abandon(self) -> None:
        """Makes the calls of this host, running and later ones, end soon. What they return does not matter."""

    def close(self) -> None:
        """Frees what the host holds. No call is running."""


Cause: TypeAlias = Literal["call", "kill", "unknown", "hang", "machine"]
"""Why a worker is gone: one of its calls ended it, it was killed from outside, either of these, it hangs, or its
machine is gone.

A transport says itself that a machine is gone, once for all of its workers."""


@dataclass(frozen=True)
class Loss:
    """The last answer of a worker, which is gone."""

    reason: str
    cause: Cause
    ended_itself: bool = False
    """Whether its process ended with an exit code of its own, and not by a signal."""


class Worker(Protocol):
    """One worker, as the dispatch sees it."""

    def send(self, ticket: int, function: Callable[..., Any], arguments: Sequence[Any]) -> None:
        """Sends a call. If the worker is gone, its next answer is a Loss."""

    def end_if_stopped(self) -> None:
        """Ends a worker whose process has been stopped (SIGSTOP). Its next answer is a Loss then."""


OwnWorker = TypeVar("OwnWorker", bound=Worker)
"""The transport's own class of workers."""


class Transport(Protocol[OwnWorker]):
    """Makes workers and waits for their answers."""

    threads_per_worker: int
    """Number of calls that a worker does at the same time."""
    capacity: int
    """Number of calls that a worker may have at the same time, those included that wait for a thread of it."""
    starts_at_once: bool
    """Whether a worker that does not start soon is lost. Otherwise it may be waiting for a place."""

    def __init__(self, make_host: Callable[[], Host], threads: int) -> None: ...

    @property
    def num_workers(self) -> int:
        """The largest number of workers at a time. It may change, and be 0. Results never depend on it."""

    def share(self, value: Any) -> Any:
        """What to give calls as an argument in place of a value that many of them take, so that it is sent seldom."""

    def start_worker(self) -> OwnWorker:
        """A new worker. It may take long until it can do calls, and gets none before."""

    def wait(self, workers: Sequence[OwnWorker], timeout: float) -> Sequence[tuple[OwnWorker, int | None, Any]]:
        """Waits until some of these workers have answered; nothing after `timeout` seconds, or earlier.

        Each answer is a worker, a ticket and a value: what the call returned, or the exception that it raised. The
        ticket None stands for the worker: it can do calls (its first answer, the value is None), or is gone (a Loss).
        """

    def end_worker(self, worker: OwnWorker) -> None:
        """Ends a worker, even if it hangs, and frees what a lost one leaves."""

    def close(self) -> None:
        """Ends all workers soon, whatever they do. Later, new ones may be started. Calling it twice is harmless."""


def call_function(host: Host, function: Callable[..., Any], arguments: Sequence[Any]) -> Any:
    """What the call returns, or an EngineError: the one that it raised, or one with the traceback of what it raised.

    A `sys.exit` in it is a ForeignExitError in all engines, so that it ends the run and not a worker.
    """
    try:
        with convert_foreign_exits():
            return function(host, *arguments)
    except (EngineError, ForeignExitError) as error:
        return error
    except Exception as error:  # a user's simulator may raise anything; the dispatch raises it again
        failure = EngineError(describe_with_traceback(error))
        failure.__cause__ = error
        return failure
