"""The in-process engine: chunks run side by side in Python threads, each with its own simulators.

Simulators and kernels let go of the interpreter lock, so while one chunk's simulators step, another chunk's policies
act, and no core waits for the slowest copy of a batch.
"""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
from jaxtyping import Float, Float64

from contracts.engine import Context, Rollouts
from contracts.population import Population
from rollouts.chunks import ChunkEvaluator, Task, added, cut, joined


class InProcessEngine:
    """Evaluates in this process with `threads` threads."""

    def __init__(self, task: Task, *, chunk_size: int, threads: int):
        self._evaluator = ChunkEvaluator(task, threads)
        self._chunk_size = chunk_size
        self._threads = threads
        self._executor = ThreadPoolExecutor(threads)

    def evaluate(self, population: Population, context: Context) -> Rollouts:
        """Lets every member act in its episodes."""
        chunks = cut(len(population), self._chunk_size)
        env_threads = max(1, self._threads // len(chunks))
        return joined(
            list(
                self._executor.map(lambda ids: self._evaluator.evaluate(population, ids, context, env_threads), chunks)
            )
        )

    def combine(
        self, population: Population, utilities: Float[np.ndarray, " members"]
    ) -> Float64[np.ndarray, " params"]:
        """Sum over members of utility times noise, added in chunk order."""
        chunks = cut(len(population), self._chunk_size)
        return added(list(self._executor.map(lambda ids: self._evaluator.combine(population, ids, utilities), chunks)))

    def close(self) -> None:
        """Frees the simulators and the threads."""
        self._executor.shutdown()
        self._evaluator.close()
