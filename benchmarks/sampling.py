"""Time and memory of sampling a population's weights and of the update, by default 200 members of 92,690 weights.

    python -m benchmarks.sampling --json

Sampling makes the weights of every chunk and their mean squares on all cores, and drops them. The update is `tell` of
OpenAI-ES with the weighted noise sums of the thread engine. CPU seconds are those of all threads. Memory is NumPy's
peak, with the weights of the chunks that are made at the same time.
"""

import argparse
import json
import time
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from statistics import median

import numpy as np

from hebbes.contracts.engine import Engine
from hebbes.contracts.strategy import Results
from hebbes.environments.environment_spec import EnvironmentSpec
from hebbes.execution.chunk_rule import count_chunks, cut_into_chunks
from hebbes.execution.chunks import Task
from hebbes.execution.engine_options import EngineOptions, resolve_num_threads
from hebbes.execution.engines import make_engine
from hebbes.execution.episode import Agent
from hebbes.policies.linear import Linear
from hebbes.policies.mean_squares import compute_mean_squares
from hebbes.strategies.openai_es import OpenAIES, OpenAIESSettings

CHUNK_SIZE = 32
TASK = Task(Agent(Linear((4,), 2), "argmax"), EnvironmentSpec("CartPole-v1", "envpool"), 0)
"""Needed to make an engine; it is never played."""


def run_generation(strategy: OpenAIES, engine: Engine, executor: ThreadPoolExecutor, number: int) -> None:
    """Samples all weights and updates the strategy."""
    population = strategy.ask(number)
    chunks = cut_into_chunks(range(len(population)), count_chunks(len(population), CHUNK_SIZE))
    squares = list(executor.map(lambda ids: compute_mean_squares(population.weights(ids)), chunks))
    fitness = np.random.default_rng(number).normal(size=len(population))
    sum_noise = partial(engine.weighted_noise_sums, population)
    strategy.tell(population, Results(fitness, np.concatenate(squares), sum_noise))


def measure(members: int, params: int, turns: int) -> dict[str, float]:
    """Median seconds, and the memory peak of one more generation."""
    strategy = OpenAIES(OpenAIESSettings(population_size=members), np.zeros(params, np.float32), 0)
    threads, seconds, cpu_seconds = resolve_num_threads(-1), [], []
    engine = make_engine(TASK, EngineOptions(chunk_size=CHUNK_SIZE, threads=threads, engine="in_process"))
    with ThreadPoolExecutor(threads) as executor:
        for number in range(turns):
            begun, cpu_begun = time.perf_counter(), time.process_time()
            run_generation(strategy, engine, executor, number)
            seconds.append(time.perf_counter() - begun)
            cpu_seconds.append(time.process_time() - cpu_begun)
        tracemalloc.start()
        run_generation(strategy, engine, executor, turns)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    engine.close()
    return {"seconds": median(seconds), "cpu_seconds": median(cpu_seconds), "megabytes": peak / 1e6}


def main() -> None:
    """Prints the measured values."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--members", type=int, default=200)
    parser.add_argument("--params", type=int, default=92_690)
    parser.add_argument("--turns", type=int, default=5, help="generations that are timed")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    results = measure(arguments.members, arguments.params, arguments.turns)
    print(json.dumps(results) if arguments.json else results)


if __name__ == "__main__":
    main()
