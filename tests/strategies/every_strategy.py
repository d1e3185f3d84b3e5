"""All strategies, with settings that climb a small sphere quickly. A new file in strategies/ needs its line here."""

import numpy as np
import pytest

from hebbes.registry.lookup import lookup, names

SETTINGS = {
    "openai_es": {"popsize": 20, "sigma": 0.1, "lr": 0.02, "weight_penalty": 0.0},
    "ars": {"popsize": 20, "sigma": 0.05, "lr": 0.1},
    "pgpe": {"popsize": 20, "sigma": 0.2, "lr": 0.1},
    "snes": {"sigma": 0.3},
    "xnes": {"sigma": 0.3},
    "cem": {"popsize": 40, "sigma": 0.5, "extra_variance": 0.01},
    "cma_es": {"sigma": 0.3},
    "sep_cma_es": {"sigma": 0.3},
    "cr_fm_nes": {"sigma": 0.3},
    "one_plus_one": {"sigma": 0.3},
    "ga": {"popsize": 40, "parents": 5, "sigma": 0.1},
}
NUM_PARAMS = 10
START = np.random.default_rng(1).normal(size=NUM_PARAMS).astype(np.float32)


FOUND = names("strategy")
each_strategy = pytest.mark.parametrize("name", FOUND)


def make(name, seed=0, start=START, **changes):
    found = lookup("strategy", name)
    return found(found.Settings(**{**SETTINGS[name], **changes}), start, seed)


def members(population):
    return population.weights(range(len(population)))


def sphere(rows):
    return -np.square(rows.astype(np.float64) - 0.5).sum(axis=1)


def combine(population, utilities, power=1):
    return population.combine(range(len(population)), utilities, power)


def run(strategy, generations, fitness_of=sphere, first=0):
    for generation in range(first, first + generations):
        population = strategy.ask(generation)
        figures = strategy.tell(population, fitness_of(members(population)), combine)
    return figures


def assert_same(states):
    first, second = states
    assert first.keys() == second.keys()
    for name in first:
        assert np.array_equal(first[name], second[name]), name
