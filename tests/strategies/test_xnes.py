import numpy as np
import pytest
from scipy.linalg import expm

from hebbes.strategies.snes import SNES, SNESSettings
from hebbes.strategies.xnes import XNES, XNESSettings, compute_default_rate
from tests.shape_checks import unchecked
from tests.strategies.every_strategy import make_members, make_results

START = np.random.default_rng(2).normal(size=4).astype(np.float32)


def test_two_steps_equal_algorithm_1_written_out():
    ours = XNES(
        XNESSettings(population_size=5, sigma=0.3, learning_rate=0.9, sigma_learning_rate=0.2, shape_learning_rate=0.1),
        START,
        seed=3,
    )
    mean, sigma, B = START.astype(np.float64), 0.3, np.eye(4)
    hats = [max(0.0, np.log(3.5) - np.log(rank)) for rank in (1, 2, 3, 4, 5)]
    utilities = np.array(hats) / sum(hats) - 0.2
    for generation in range(2):
        population = ours.ask(generation)
        ours.tell(population, make_results(population, np.array([1.0, 5.0, np.nan, 4.0, 2.0, 99.0])))
        rows = make_members(population).astype(np.float64)[[1, 3, 4, 0, 2]]  # best first
        s = np.linalg.solve(B, (rows - mean).T).T / sigma
        G_delta = sum(u * z for u, z in zip(utilities, s, strict=True))
        G_M = sum(u * (np.outer(z, z) - np.eye(4)) for u, z in zip(utilities, s, strict=True))
        G_sigma = np.trace(G_M) / 4
        mean = mean + 0.9 * sigma * B @ G_delta
        sigma, B = sigma * np.exp(0.1 * G_sigma), B @ expm(0.05 * (G_M - G_sigma * np.eye(4)))
    assert ours.mean == pytest.approx(mean, abs=1e-5)
    assert ours.state_dict()["sigma"] == pytest.approx(sigma, rel=1e-4)
    assert ours.state_dict()["shape"] == pytest.approx(B, abs=1e-4)


def test_learning_rates_are_those_of_table_1():
    assert compute_default_rate(10) == pytest.approx(0.6 * (3 + np.log(10)) / (10 * np.sqrt(10)))


def test_the_shape_keeps_its_volume():
    ours = XNES(XNESSettings(shape_learning_rate=0.3), START, seed=3)
    for generation in range(40):
        population = ours.ask(generation)
        ours.tell(
            population, make_results(population, -np.square(make_members(population) * [1, 3, 9, 27]).sum(axis=1))
        )
    shape = ours.state_dict()["shape"]
    assert np.linalg.det(shape) == pytest.approx(1.0)
    assert np.square(shape).sum(axis=1)[0] > 4 * np.square(shape).sum(axis=1)[3]


class NoisePopulation:
    def __init__(self, noise):
        self._noise = noise

    def noise(self, ids):
        return self._noise[list(ids)]


def test_equals_snes_in_one_dimension():
    rates = {"population_size": 8, "sigma": 0.5, "learning_rate": 0.7, "sigma_learning_rate": 0.3}
    ours, simpler = XNES(XNESSettings(**rates), START[:1], 3), SNES(SNESSettings(**rates), START[:1], 3)
    for generation in range(10):
        population = simpler.ask(generation)
        fitness = -np.square(make_members(population)[:, 0].astype(np.float64) - 2)
        noise = np.array([population.weighted_noise_sums([member], np.ones((1, 1)), [1])[0] for member in range(8)])
        with unchecked():  # it asks for a DensePopulation
            ours.tell(NoisePopulation(noise), make_results(population, fitness))
        simpler.tell(population, make_results(population, fitness))
    assert ours.mean == pytest.approx(simpler.mean, rel=1e-6)
    assert ours.state_dict()["sigma"] == pytest.approx(simpler.state_dict()["sigma"][0], rel=1e-6)


def test_says_how_much_memory_it_would_need_before_it_takes_any():
    with pytest.raises(ValueError, match=r"xnes would need 11\.2 GiB .* 12288 parameters.*sep_cma_es"):
        XNES(XNESSettings(), np.zeros(12_288, np.float32), seed=0)


def test_a_sigma_that_grows_beyond_all_floats_ends_the_search():
    strategy = XNES(XNESSettings(population_size=20, sigma=0.3, sigma_learning_rate=1e6), START, seed=3)
    with pytest.raises(FloatingPointError, match="sigma"), np.errstate(over="ignore"):
        for generation in range(20):
            population = strategy.ask(generation)
            members = make_members(population)
            strategy.tell(population, make_results(population, np.square(members.astype(np.float64)).sum(axis=1)))
