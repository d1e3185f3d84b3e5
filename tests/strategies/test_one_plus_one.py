import numpy as np
import pytest

from hebbes.strategies.one_plus_one import OnePlusOne, OnePlusOneSettings
from tests.strategies.every_strategy import make_results

START = np.random.default_rng(2).normal(size=8).astype(np.float32)
UP, DOWN = np.exp(0.8 / 3), np.exp(-0.2 / 3)  # d = sqrt(8 + 1)
NAN = np.nan


@pytest.mark.parametrize(
    ("candidate", "parent", "accepted", "factor"),
    [
        (2.0, 1.0, True, UP),
        (1.0, 2.0, False, DOWN),
        (1.0, 1.0, True, 1.0),
        (NAN, -1e9, False, DOWN),
        (-1e9, NAN, True, UP),
        (NAN, NAN, False, 1.0),
    ],
)
def test_one_generation_by_hand(candidate, parent, accepted, factor):
    strategy = OnePlusOne(OnePlusOneSettings(sigma=0.5), START, seed=3)
    population = strategy.ask(0)
    tried = population.weights([0])[0]
    metrics = strategy.tell(population, make_results(population, np.array([candidate, parent])))
    assert np.array_equal(strategy.mean, tried if accepted else START)
    assert metrics["sigma"] == 0.5
    assert strategy.state_dict()["sigma"] == pytest.approx(0.5 * factor)


def test_one_success_in_five_keeps_sigma():
    strategy = OnePlusOne(OnePlusOneSettings(sigma=0.5), START, seed=3)
    for generation, candidate in enumerate([0.0, 0.0, 2.0, 0.0, 0.0]):
        strategy.tell(strategy.ask(generation), make_results(strategy.ask(generation), np.array([candidate, 1.0])))
    assert strategy.state_dict()["sigma"] == pytest.approx(0.5)


def test_sigma_has_a_floor_to_which_it_never_rises():
    strategy = OnePlusOne(OnePlusOneSettings(sigma=0.5, sigma_min=0.45), START, seed=3)
    for generation in range(5):
        strategy.tell(strategy.ask(generation), make_results(strategy.ask(generation), np.array([0.0, 1.0])))
    assert strategy.state_dict()["sigma"] == 0.45
    strategy = OnePlusOne(OnePlusOneSettings(sigma=0.1, sigma_min=0.45), START, seed=3)
    strategy.tell(strategy.ask(0), make_results(strategy.ask(0), np.array([0.0, 1.0])))
    assert strategy.state_dict()["sigma"] == 0.1


def test_sigma_that_has_grown_falls_back_to_a_start_below_the_floor():
    strategy = OnePlusOne(OnePlusOneSettings(sigma=0.1, sigma_min=0.45), START, seed=3)
    for candidate in (2.0, *[0.0] * 5):
        strategy.tell(strategy.ask(0), make_results(strategy.ask(0), np.array([candidate, 1.0])))
    assert strategy.state_dict()["sigma"] == 0.1


def test_the_parent_is_judged_by_its_return_of_the_same_generation():
    strategy = OnePlusOne(OnePlusOneSettings(sigma=0.5), START, seed=3)
    strategy.tell(strategy.ask(0), make_results(strategy.ask(0), np.array([100.0, 0.0])))  # a lucky return
    population = strategy.ask(1)
    strategy.tell(population, make_results(population, np.array([2.0, 1.0])))
    assert np.array_equal(strategy.mean, population.weights([0])[0])
