"""The thread engine: evaluates chunks in parallel in threads of this process. Each chunk has its own simulators.

Simulators and kernels release the interpreter lock. So one chunk's policies act while another chunk's simulators step,
and no core waits for the slowest sub-environment of a batch.
"""

from collections.abc import Callable

import numpy as np
from jaxtyping import Float, Float64

from hebbes.contracts.engine import Context, EngineError, Rollouts
from hebbes.contracts.errors import describe_with_traceback
from hebbes.contracts.population import Population
from hebbes.execution.chunks import ChunkEvaluator, Task, cut_into_chunks, join_rollouts, sum_in_order
from hebbes.execution.daemon_threads import DaemonThreads, Result

STOP_SECONDS = 2.0
"""How long `close` waits for a simulator to finish its env step. One that hangs cannot be ended."""


class ThreadEngine:
    """Evaluates in this process, in `threads` threads."""

    def __init__(self, task: Task, *, chunk_size: int, threads: int):
        self._evaluator = ChunkEvaluator(task, threads)
        self._chunk_size = chunk_size
        self._num_threads = threads
        self._threads = DaemonThreads(threads)

    def evaluate(self, population: Population, context: Context, members: range | None = None) -> Rollouts:
        """The results of the given members, or of all, in their episodes; EngineError if they cannot be had."""
        members = range(len(population)) if members is None else members
        chunks = cut_into_chunks(members.stop, self._chunk_size, members.start)
        env_threads = max(1, self._num_threads // len(chunks))
        return join_rollouts(
            self._map(lambda ids: self._evaluator.evaluate(population, ids, context, env_threads), chunks)
        )

    def weighted_noise_sum(
        self, population: Population, utilities: Float[np.ndarray, " members"], power: int = 1
    ) -> Float64[np.ndarray, " params"]:
        """Sum over members of utility * noise**power; the sums of the chunks are added in chunk order."""
        chunks = cut_into_chunks(len(population), self._chunk_size)
        return sum_in_order(
            self._map(lambda ids: self._evaluator.weighted_noise_sum(population, ids, utilities, power), chunks)
        )

    def close(self) -> None:
        """Stops running chunks at their next env step, then frees the simulators and the threads."""
        self._evaluator.abandon()
        self._threads.close(STOP_SECONDS)
        self._evaluator.close()

    def _map(self, function: Callable[[range], Result], chunks: list[range]) -> list[Result]:
        def call(ids: range) -> Result:  # catches in the threads, because signal handlers raise in the caller
            try:
                return function(ids)
            except Exception as error:  # whatever a user's simulator raises
                raise EngineError(describe_with_traceback(error)) from error

        return self._threads.map(call, chunks)
