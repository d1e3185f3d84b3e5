"""All strategies, with settings that climb a small sphere quickly. A new file in strategies/ needs a line here."""

import numpy as np
import pytest

from hebbes.registry.lookup import find_class, list_names

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
each_strategy = pytest.mark.parametrize("name", STRATEGY_NAMES)


def make_strategy(name, seed=0, start=START, **changes):
    found = find_class("strategy", name)
    return found(found.Settings(**{**SETTINGS[name], **changes}), start, seed)


def make_members(population):
    return population.weights(range(len(population)))


def sphere(rows):
    return -np.square(rows.astype(np.float64) - 0.5).sum(axis=1)


def sum_weighted_noise(population, utilities, power=1):
    return population.weighted_noise_sum(range(len(population)), utilities, power)


def run_generations(strategy, generations, fitness_of=sphere, first=0):
    for generation in range(first, first + generations):
        population = strategy.ask(generation)
        metrics = strategy.tell(population, fitness_of(make_members(population)), sum_weighted_noise)
    return metrics


def assert_states_equal(states):
    first, second = states
    assert first.keys() == second.keys()
    for name in first:
        assert np.array_equal(first[name], second[name]), name
