"""Evaluations that each strategy needs on test functions, compared with EvoTorch's implementation if there is one.

    python -m benchmarks.optimizers --quick

Sphere and Rosenbrock: evaluations until some member's cost is 1e-6 of that of the start. Rastrigin: cost of the best
member after all 100,000 evaluations. The values are medians over the seeds. "-" means that the median run did not
get there, "time" the same where at least one run used up its seconds of CPU time.

Both sides have the same start, population size, initial sigma and learning rates, and float32 members. Costs are
float64. Optima are not at the origin. Our mean policy is evaluated too, but counted only if the method itself needs it
(one_plus_one and ga). EvoTorch is in benchmarks/requirements.txt. Without it, only our side runs.
"""

import argparse
import json
import logging
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from math import inf, isinf, sqrt
from statistics import median
from typing import Any, TypeAlias

import numpy as np

from hebbes.contracts.strategy import Results
from hebbes.execution.noise_sums import sum_noise_of_parts
from hebbes.policies.mean_squares import compute_mean_squares
from hebbes.registry.lookup import find_class
from hebbes.strategies.core.adaptive import AdaptiveSettings, CovarianceTooLargeError

MAX_EVALUATIONS = 100_000
GOAL = 1e-6
COUNTERPARTS = ("pgpe", "snes", "xnes", "cem", "sep_cma_es", "cma_es", "ga")
STRATEGIES = (*COUNTERPARTS, "openai_es", "ars", "cr_fm_nes", "one_plus_one")
SIZES = {"sphere": (10, 100, 1000), "rosenbrock": (10, 100, 1000), "rastrigin": (10, 100)}
NEEDS_ITS_PARENT = {"one_plus_one", "ga"}

Trace: TypeAlias = Iterator[tuple[int, float]]
"""Per generation: evaluations so far, and the lowest cost in this generation."""


@dataclass(frozen=True)
class Problem:
    """A cost function of rows that is to be minimized. It is shifted, so that its optimum is not at the origin."""

    name: str
    dimensions: int

    @property
    def sigma(self) -> float:
        """Initial standard deviation for both sides."""
        return 2.0 if self.name == "rastrigin" else 0.5

    def start(self, seed: int) -> np.ndarray:
        """The starting point of both sides."""
        rng = np.random.default_rng((seed, self.dimensions))
        if self.name == "rosenbrock":
            return np.zeros(self.dimensions, np.float32)
        return (1 + (3 if self.name == "rastrigin" else 1) * rng.standard_normal(self.dimensions)).astype(np.float32)

    def costs(self, rows: np.ndarray) -> np.ndarray:
        """Cost of each row, in float64; zero where every coordinate is 1."""
        x = np.asarray(rows, np.float64)
        if self.name == "rosenbrock":
            return (100 * np.square(x[:, 1:] - x[:, :-1] ** 2) + np.square(1 - x[:, :-1])).sum(axis=1)
        y = x - 1
        waves = 10 * (1 - np.cos(2 * np.pi * y)) if self.name == "rastrigin" else 0.0
        return (np.square(y) + waves).sum(axis=1)


def make_settings(name: str, problem: Problem) -> dict[str, Any]:
    """Our settings. They differ from the defaults where these, which are for policies, do not work well."""
    d, sigma = problem.dimensions, problem.sigma
    special: dict[str, dict[str, Any]] = {
        "openai_es": {
            "learning_rate": 0.3 * sigma**2,
            "learning_rate_decay": 0.99,
            "learning_rate_min": 0.0,
            "sigma_decay": 0.995,
            "sigma_min": 0.0,
        }
        | {"population_size": 40, "weight_penalty": 0.0},
        "ars": {
            "population_size": 40,
            "learning_rate": 0.05 * sqrt(d),
            "sigma": 0.01,
            "learning_rate_schedule": "exponential",
            "learning_rate_min": 0.0,
        }
        | {"sigma_schedule": "exponential", "sigma_decay": 0.995, "sigma_min": 0.0},
        "pgpe": {"population_size": 40, "learning_rate": 0.0005 * sqrt(d), "sigma_learning_rate": 0.1},
        "cem": {"population_size": 40 + 4 * int(sqrt(d))},
        "ga": {"population_size": 40, "parents": 20, "sigma": 0.02},
    }
    return {"sigma": sigma, **special.get(name, {})}


def run_ours(name: str, problem: Problem, seed: int) -> Trace:
    """Runs one of our strategies on the problem."""
    found = find_class("strategy", name)
    strategy = found(found.Settings(**make_settings(name, problem)), problem.start(seed), seed)
    evaluations, generation = 0, 0
    while True:
        try:
            population = strategy.ask(generation)
        except FloatingPointError:  # it converged or diverged
            return
        weights = population.weights(range(len(population)))
        costs = problem.costs(weights)
        sum_noise = partial(sum_noise_of_parts, population, [range(len(population))])
        strategy.tell(population, Results(-costs, compute_mean_squares(weights), sum_noise))
        counted = costs if name in NEEDS_ITS_PARENT else costs[:-1]
        evaluations, generation = evaluations + len(counted), generation + 1
        yield evaluations, float(counted.min())


def make_evotorch_searcher(name: str, problem: Problem, seed: int, costs: Callable[[Any], Any]) -> Any:
    """EvoTorch's counterpart with the same settings."""
    import torch
    from evotorch import Problem as TorchProblem
    from evotorch import algorithms, operators

    d, settings, start = problem.dimensions, make_settings(name, problem), torch.as_tensor(problem.start(seed))
    types = {"dtype": torch.float32, "eval_dtype": torch.float64}
    task = TorchProblem(
        "min", costs, solution_length=d, initial_bounds=(-1.0, 1.0), vectorized=True, seed=seed, **types
    )
    gaussian = {"center_init": start, "stdev_init": settings["sigma"]}
    population_size = settings.get("population_size", AdaptiveSettings().choose_population_size(d))
    match name:
        case "snes":
            return algorithms.SNES(task, popsize=population_size, **gaussian)
        case "xnes":
            return algorithms.XNES(task, popsize=population_size, **gaussian)
        case "cma_es" | "sep_cma_es":
            return algorithms.CMAES(task, popsize=population_size, separable=name == "sep_cma_es", **gaussian)
        case "cem":
            return algorithms.CEM(task, popsize=population_size, parenthood_ratio=0.5, **gaussian)
        case "pgpe":
            rates = {
                "center_learning_rate": settings["learning_rate"],
                "stdev_learning_rate": settings["sigma_learning_rate"],
            }
            return algorithms.PGPE(task, popsize=population_size, **rates, **gaussian)
        case _:
            task._fill = lambda values: values.copy_(start + settings["sigma"] * torch.randn_like(values))
            mutation = operators.GaussianMutation(task, stdev=settings["sigma"])
            return algorithms.GeneticAlgorithm(task, operators=[mutation], popsize=population_size)


def run_evotorch(name: str, problem: Problem, seed: int) -> Trace:
    """Runs EvoTorch's searcher on the problem."""
    import torch
    from torch.linalg import LinAlgError

    batches: list[np.ndarray] = []

    def costs(rows: Any) -> Any:
        batches.append(problem.costs(rows.numpy()))
        return torch.as_tensor(batches[-1])

    searcher, evaluations = make_evotorch_searcher(name, problem, seed, costs), 0
    while True:
        try:
            searcher.step()
        except LinAlgError:  # a covariance that is no longer positive definite
            return
        found = np.concatenate(batches)
        batches.clear()
        evaluations += len(found)
        yield evaluations, float(found.min())


@dataclass(frozen=True)
class Budget:
    """The number of runs per median, and the limits of one run."""

    seeds: int
    seconds: float
    """CPU time of one run."""
    evaluations: int


def measure_run(trace: Trace, problem: Problem, seed: int, budget: Budget) -> tuple[float, bool]:
    """Evaluations to the goal, or the best cost after all evaluations; and whether time ran out."""
    goal = GOAL * float(problem.costs(problem.start(seed)[np.newaxis])[0])
    deadline, best = time.process_time() + budget.seconds, inf
    is_rastrigin = problem.name == "rastrigin"
    for evaluations, cost in trace:
        best = min(best, cost)
        if not is_rastrigin and best <= goal:
            return evaluations, False
        if evaluations >= budget.evaluations:
            break
        if time.process_time() > deadline:
            return (best if is_rastrigin else inf), True
    return (best if is_rastrigin else inf), False


def format_median(side: Callable[[str, Problem, int], Trace], name: str, problem: Problem, budget: Budget) -> str:
    """The median over the seeds as text; n/a if a full covariance does not fit into memory."""
    found = []
    for seed in range(budget.seeds):
        try:
            found.append(measure_run(side(name, problem, seed), problem, seed, budget))
        except CovarianceTooLargeError:
            return "n/a"
    middle, late = median(value for value, _ in found), any(is_late for _, is_late in found)
    if isinf(middle):
        return "time" if late else "-"
    return f"{middle:.4g}" + (" (time)" if late else "")


def main() -> None:
    """Measures every strategy on every problem and prints one line each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--strategies", nargs="*", help="default: all")
    parser.add_argument("--problems", nargs="*", choices=tuple(SIZES), default=tuple(SIZES))
    parser.add_argument("--dimensions", nargs="*", type=int, help="default: 10, 100 and 1000; rastrigin: 10 and 100")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=60.0, help="CPU time limit of one run")
    parser.add_argument("--evaluations", type=int, default=MAX_EVALUATIONS, help="limit of one run")
    parser.add_argument("--quick", action="store_true", help="10 and 100 dimensions, 3 seeds, 5 seconds")
    parser.add_argument("--json", action="store_true", help="one JSON object at the end instead of lines")
    arguments = parser.parse_args()
    logging.disable(logging.INFO)  # EvoTorch's
    has_evotorch = find_spec("evotorch") is not None
    if not has_evotorch:
        print("evotorch is not installed: our side only (benchmarks/requirements.txt)", file=sys.stderr)
    names = arguments.strategies or STRATEGIES
    wanted = arguments.dimensions or ((10, 100) if arguments.quick else (10, 100, 1000))
    problems = [Problem(name, d) for name in arguments.problems for d in SIZES[name] if d in wanted]
    seeds, seconds = (3, 5.0) if arguments.quick else (arguments.seeds, arguments.seconds)
    budget = Budget(seeds, seconds, arguments.evaluations)
    rows = []
    for problem in problems:
        for name in names:
            run = partial(format_median, name=name, problem=problem, budget=budget)
            row = {"problem": problem.name, "dimensions": problem.dimensions, "strategy": name, "ours": run(run_ours)}
            row["evotorch"] = run(run_evotorch) if has_evotorch and name in COUNTERPARTS else ""
            rows.append(row)
            if not arguments.json:
                print("{problem:<11}{dimensions:>5}  {strategy:<13}{ours:>16}{evotorch:>16}".format(**row), flush=True)
    if arguments.json:
        print(json.dumps(rows))


if __name__ == "__main__":
    main()
