"""Time and memory of sampling a population's weights and of the update, by default 200 members of 92,690 weights.

    python benchmarks/sampling.py --json

Sampling makes the weights of every chunk on all cores, as the thread engine does. The update is `tell` of OpenAI-ES
with the `weighted_noise_sum` of that engine. Memory is NumPy's peak without the weights of the population.
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
from hebbes.execution.chunks import cut_into_chunks, sum_in_order
from hebbes.execution.engine_options import resolve_num_threads
from hebbes.strategies.openai_es import OpenAIES, OpenAIESSettings

CHUNK_SIZE = 32
TURNS = 5


def run_generation(strategy: OpenAIES, executor: ThreadPoolExecutor, number: int) -> tuple[float, int]:
    """Seconds of sampling and update together, and bytes of the population's weights."""
    population = strategy.ask(number)
    chunks = cut_into_chunks(len(population), CHUNK_SIZE)
    fitness = np.random.default_rng(number).normal(size=len(population))

    def weighted_noise_sum(population: Population, utilities: np.ndarray, power: int = 1) -> np.ndarray:
        parts = executor.map(
            lambda ids: population.weighted_noise_sum(ids, utilities[ids.start : ids.stop], power), chunks
        )
        return sum_in_order(list(parts))

    started = time.perf_counter()
    weights = list(executor.map(population.weights, chunks))
    strategy.tell(population, fitness, weighted_noise_sum)
    return time.perf_counter() - started, sum(rows.nbytes for rows in weights if isinstance(rows, np.ndarray))


def measure(members: int, params: int) -> dict[str, float]:
    """Median seconds, and the memory peak of one more generation."""
    strategy = OpenAIES(OpenAIESSettings(population_size=members), np.zeros(params, np.float32), 0)
    with ThreadPoolExecutor(resolve_num_threads(-1)) as executor:
        seconds = [run_generation(strategy, executor, number)[0] for number in range(TURNS)]
        tracemalloc.start()
        _, population_bytes = run_generation(strategy, executor, TURNS)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    return {"seconds": median(seconds), "megabytes_above_population": (peak - population_bytes) / 1e6}


def main() -> None:
    """Prints the measured values."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--members", type=int, default=200)
    parser.add_argument("--params", type=int, default=92_690)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    results = measure(arguments.members, arguments.params)
    print(json.dumps(results) if arguments.json else results)


if __name__ == "__main__":
    main()
