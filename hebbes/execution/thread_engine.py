"""The in-process engine: chunks run side by side in Python threads, each with its own simulators.

Simulators and kernels let go of the interpreter lock, so while one chunk's simulators step, another chunk's policies
act, and no core waits for the slowest copy of a batch.
"""

from collections.abc import Callable

import numpy as np
from jaxtyping import Float, Float64

from hebbes.contracts.engine import Context, EngineError, Rollouts
from hebbes.contracts.errors import report
from hebbes.contracts.population import Population
from hebbes.execution.chunks import ChunkEvaluator, Task, added, cut, joined
from hebbes.execution.daemon_threads import DaemonThreads, Result

STOP_SECONDS = 2.0
"""How long `close` waits for a simulator that is within an env step; one that is stuck cannot be ended."""


class InProcessEngine:
    """Evaluates in this process with `threads` threads."""

    def __init__(self, task: Task, *, chunk_size: int, threads: int):
        self._evaluator = ChunkEvaluator(task, threads)
        self._chunk_size = chunk_size
        self._num_threads = threads
        self._threads = DaemonThreads(threads)

    def evaluate(self, population: Population, context: Context, members: range | None = None) -> Rollouts:
        """Lets the members named, or all, act in their episodes; EngineError where that cannot be done."""
        members = range(len(population)) if members is None else members
        chunks = cut(members.stop, self._chunk_size, members.start)
        env_threads = max(1, self._num_threads // len(chunks))
        return joined(self._map(lambda ids: self._evaluator.evaluate(population, ids, context, env_threads), chunks))

    def combine(
        self, population: Population, utilities: Float[np.ndarray, " members"], power: int = 1
    ) -> Float64[np.ndarray, " params"]:
        """Sum over members of utility times noise to the power, added in chunk order."""
        chunks = cut(len(population), self._chunk_size)
        return added(self._map(lambda ids: self._evaluator.combine(population, ids, utilities, power), chunks))

    def close(self) -> None:
        """Ends what still runs at its next env step, then frees the simulators and the threads."""
        self._evaluator.abandon()
        self._threads.close(STOP_SECONDS)
        self._evaluator.close()

    def _map(self, function: Callable[[range], Result], chunks: list[range]) -> list[Result]:
        def guarded(ids: range) -> Result:  # in the threads, so as not to catch what a signal's handler raises here
            try:
                return function(ids)
            except Exception as error:  # whatever a user's simulator raises
                raise EngineError(report(error)) from error

        return self._threads.map(guarded, chunks)
