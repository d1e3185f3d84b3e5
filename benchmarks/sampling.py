"""Seconds and memory of sampling a population's weights and of the update, 200 members of 92,690 weights by default.

    python benchmarks/sampling.py --json

Sampling makes every chunk's weights, as the in-process engine does with all cores; the update is OpenAI-ES's `tell`
with that engine's `combine`. Memory is what numpy held at the peak, less the weights of the population themselves.
"""

import argparse
import json
import sys
import time
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import median

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from hebbes.contracts.population import Population
from hebbes.execution.chunks import added, cut
from hebbes.execution.engines import num_threads
from hebbes.strategies.openai_es import OpenAIES, OpenAIESSettings

CHUNK_SIZE = 32
TURNS = 5


def one_generation(strategy: OpenAIES, executor: ThreadPoolExecutor, number: int) -> tuple[float, int]:
    """Seconds of sampling and update together, and the bytes of the population's weights."""
    population = strategy.ask(number)
    chunks = cut(len(population), CHUNK_SIZE)
    fitness = np.random.default_rng(number).normal(size=len(population))

    def combine(population: Population, utilities: np.ndarray, power: int = 1) -> np.ndarray:
        parts = executor.map(lambda ids: population.combine(ids, utilities[ids.start : ids.stop], power), chunks)
        return added(list(parts))

    started = time.perf_counter()
    weights = list(executor.map(population.weights, chunks))
    strategy.tell(population, fitness, combine)
    return time.perf_counter() - started, sum(rows.nbytes for rows in weights if isinstance(rows, np.ndarray))


def measure(members: int, params: int) -> dict[str, float]:
    """Median seconds, and the peak of memory in a generation of its own."""
    strategy = OpenAIES(OpenAIESSettings(popsize=members), np.zeros(params, np.float32), 0)
    with ThreadPoolExecutor(num_threads(-1)) as executor:
        seconds = [one_generation(strategy, executor, number)[0] for number in range(TURNS)]
        tracemalloc.start()
        _, population_bytes = one_generation(strategy, executor, TURNS)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    return {"seconds": median(seconds), "megabytes_above_population": (peak - population_bytes) / 1e6}


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--members", type=int, default=200)
    parser.add_argument("--params", type=int, default=92_690)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    figures = measure(arguments.members, arguments.params)
    print(json.dumps(figures) if arguments.json else figures)


if __name__ == "__main__":
    main()
