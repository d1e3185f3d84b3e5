"""All strategies, with settings that climb a small sphere quickly, and what runs them without an engine.

A new file in strategies/ needs a line in SETTINGS.
"""

import numpy as np
import pytest

from hebbes.contracts.strategy import Results
from hebbes.policies.mean_squares import compute_mean_squares
from hebbes.registry.lookup import find_class, list_names
from hebbes.strategies.core.gaussian_search import GaussianStrategy

SETTINGS = {
    "openai_es": {"population_size": 20, "sigma": 0.1, "learning_rate": 0.02, "weight_penalty": 0.0},
    "ars": {"population_size": 20, "sigma": 0.05, "learning_rate": 0.1},
    "pgpe": {"population_size": 20, "sigma": 0.2, "learning_rate": 0.1},
    "snes": {"sigma": 0.3},
    "xnes": {"sigma": 0.3},
    "cem": {"population_size": 40, "sigma": 0.5, "extra_variance": 0.01},
    "cma_es": {"sigma": 0.3},
    "sep_cma_es": {"sigma": 0.3},
    "cr_fm_nes": {"sigma": 0.3},
    "one_plus_one": {"sigma": 0.3},
    "ga": {"population_size": 40, "parents": 5, "sigma": 0.1},
}
NUM_PARAMS = 10
START = np.random.default_rng(1).normal(size=NUM_PARAMS).astype(np.float32)


STRATEGY_NAMES = list_names("strategy")
SUMS_NOISE = [name for name in STRATEGY_NAMES if issubclass(find_class("strategy", name), GaussianStrategy)]
"""Strategies whose step is made of weighted noise sums."""
each_strategy = pytest.mark.parametrize("name", STRATEGY_NAMES)


def make_strategy(name, seed=0, start=START, **changes):
    found = find_class("strategy", name)
    return found(found.Settings(**{**SETTINGS[name], **changes}), start, seed)


def make_members(population):
    return population.weights(range(len(population)))


def make_results(population, fitness):
    """The results of a population whose members have this fitness."""
    members = range(len(population))

    def sum_noise(utilities, powers):
        return population.weighted_noise_sums(members, utilities, powers)

    return Results(fitness, compute_mean_squares(population.weights(members)), sum_noise)


def sphere(rows):
    return -np.square(rows.astype(np.float64) - 0.5).sum(axis=1)


def tell_fitness(strategy, fitness, generation=0):
    """Tells the fitness of the perturbed members, and 0 for the mean policy; returns their noise and the metrics.

    The noise is computed from the weights: rows minus the mean, over sigma.
    """
    population = strategy.ask(generation, len(fitness))
    noise = (make_members(population)[:-1].astype(np.float64) - strategy.mean) / np.asarray(population.sigma)
    metrics = strategy.tell(population, make_results(population, np.append(fitness, 0.0)))
    return noise, metrics


def run_generations(strategy, generations, fitness_of=sphere, first=0):
    for generation in range(first, first + generations):
        population = strategy.ask(generation)
        metrics = strategy.tell(population, make_results(population, fitness_of(make_members(population))))
    return metrics


def assert_states_equal(states):
    first, second = states
    assert first.keys() == second.keys()
    for name in first:
        assert np.array_equal(first[name], second[name]), name
