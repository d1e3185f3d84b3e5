import numpy as np
import pytest
from cmaes import CMA

from hebbes.strategies.cma_es import CMAES
from hebbes.strategies.core.adaptive import AdaptiveSettings
from hebbes.strategies.search import Search
from tests.strategies.every_strategy import make_members, make_results

START = np.random.default_rng(2).normal(size=6).astype(np.float32)
AXES = np.linalg.qr(np.random.default_rng(4).normal(size=(6, 6)))[0]


def rotated_ellipsoid(rows):
    return -(np.square(rows.astype(np.float64) @ AXES) * np.logspace(0, 4, 6)).sum(axis=1)


class FixedNoise:
    """A generator for the library that returns given rows of noise."""

    def __init__(self):
        self.rows = iter(())

    def randn(self, num_params):
        return next(self.rows)


def test_equals_the_librarys_own_ask_and_tell_with_the_same_noise():
    ours = CMAES(AdaptiveSettings(sigma=0.5), START, seed=3)
    library = CMA(START.astype(np.float64), 0.5)
    library._rng = FixedNoise()
    for generation in range(25):
        population = ours.ask(generation)
        library._rng.rows = iter(population.noise(range(len(population) - 1)))
        asked = np.array([library.ask() for _ in range(library.population_size)])
        rows = make_members(population)
        assert rows[:-1] == pytest.approx(asked, abs=1e-5)
        fitness = rotated_ellipsoid(rows)
        library.tell([(row, -value) for row, value in zip(rows[:-1], fitness[:-1], strict=True)])
        ours.tell(population, make_results(population, fitness))
    assert ours.mean == pytest.approx(library.mean, abs=1e-5)
    assert ours.state_dict()["covariance"] == pytest.approx(library._C, rel=1e-3, abs=1e-6)


def test_learns_a_rotated_landscape():
    ours = CMAES(AdaptiveSettings(sigma=0.5), START, seed=3)
    for generation in range(150):
        population = ours.ask(generation)
        ours.tell(population, make_results(population, rotated_ellipsoid(make_members(population))))
    lengths = np.sqrt(np.diag(AXES.T @ ours.state_dict()["covariance"] @ AXES))
    assert lengths[0] / lengths[-1] == pytest.approx(100, rel=0.7)  # square root of the landscape's condition, 1e4


def test_says_how_much_memory_it_would_need_before_it_takes_any():
    with pytest.raises(ValueError, match=r"cma_es would need 85\.5 GiB .* 12288 parameters.*sep_cma_es"):
        CMAES(AdaptiveSettings(), np.zeros(12_288, np.float32), seed=0)  # 2 * 32 + 12 matrices


def test_a_covariance_that_becomes_singular_ends_the_search_at_the_solution():
    """Fitness fixes the sum of the weights and nothing else. The library goes on, and its weights grow without end."""
    search = Search("cma_es", initial_mean=np.full(2, 0.3), sigma=0.5)
    with pytest.raises(FloatingPointError, match="has converged in some direction: the covariance of cma_es"):
        for _ in range(400):
            rows = search.ask()
            search.tell(-np.square(rows.sum(axis=1) - 1.0))
    assert search.mean.sum() == pytest.approx(1, abs=1e-6) and np.abs(search.mean).max() < 10
