import crfmnes.alg
import numpy as np
import pytest

from hebbes.strategies.cr_fm_nes import CRFMNES, CRFMNESSettings, sort_by_cost_and_distance
from hebbes.strategies.search import Search
from tests.strategies.every_strategy import make_members, make_results

START = np.random.default_rng(2).normal(size=12).astype(np.float32)


def ellipsoid(rows):
    return -(np.square(rows.astype(np.float64)) * np.logspace(0, 3, rows.shape[-1])).sum(axis=-1)


def sort_as_library(members):
    """Ours are in pairs. The library has one half first, then the other with the opposite noise."""
    return np.concatenate([members[0::2], members[1::2]])


@pytest.mark.parametrize("num_failed", [0, 3])
def test_equals_the_librarys_own_optimize_with_the_same_noise(monkeypatch, num_failed):
    ours = CRFMNES(CRFMNESSettings(sigma=0.5), START, seed=3)
    theirs, asked = [], []
    monkeypatch.setattr(np.random, "randn", lambda *shape: theirs.pop())
    theirs.append(ours.state_dict()["direction"] * np.sqrt(12))

    def cost(column):
        asked.append(column[:, 0].astype(np.float32))
        return np.inf if len(asked) <= num_failed else -ellipsoid(asked[-1])

    library = crfmnes.CRFMNES(12, cost, START.astype(np.float64)[:, None], 0.5, 12, use_constraint_violation=False)
    for generation in range(25):
        population = ours.ask(generation)
        theirs.append(np.stack([population.noise(member) for member in range(0, 12, 2)], axis=1))
        asked.clear()
        library.optimize(1)
        rows = make_members(population)
        assert sort_as_library(rows[:-1]) == pytest.approx(np.array(asked), abs=1e-5)
        fitness = ellipsoid(rows)
        fitness[sort_as_library(np.arange(12))[:num_failed]] = np.nan
        ours.tell(population, make_results(population, fitness))
    assert ours.mean == pytest.approx(library.m[:, 0], abs=1e-5)
    assert ours.state_dict()["sigma"] == pytest.approx(library.sigma, rel=1e-4)
    assert ours.state_dict()["deviations"] == pytest.approx(library.D, rel=1e-4)


@pytest.mark.parametrize("num_better", [1, 2])
def test_ties_do_not_blow_sigma_up(num_better):
    ours = CRFMNES(CRFMNESSettings(population_size=20, sigma=0.3), np.zeros(10, np.float32), seed=3)
    rng = np.random.default_rng(0)
    for generation in range(200):
        fitness = np.zeros(21)
        fitness[rng.choice(20, num_better, replace=False)] = 1.0
        metrics = ours.tell(ours.ask(generation), make_results(ours.ask(generation), fitness))
    assert metrics["sigma"] < 100


def test_one_step_of_the_mean_by_hand():
    ours = CRFMNES(CRFMNESSettings(population_size=4, sigma=0.5), START, seed=3)
    population = ours.ask(0)
    rows, before = make_members(population).astype(np.float64), START.astype(np.float64)
    ours.tell(population, make_results(population, np.array([2.0, 0.0, 1.0, 9.0, 99.0])))
    hats = np.log(3) - np.log([1, 2])  # ln(n/2 + 1) - ln(rank); the paths are too short yet for the distance weights
    weights = np.append(hats / hats.sum(), [0.0, 0.0]) - 0.25
    assert ours.mean == pytest.approx(before + weights @ (rows[[3, 0, 2, 1]] - before), abs=1e-5)


def test_the_long_direction_lengthens_the_noise():
    ours = CRFMNES(CRFMNESSettings(population_size=2000, sigma=0.5), np.zeros(5, np.float32), seed=3)
    direction = np.array([[3.0], [0.0], [0.0], [4.0], [0.0]])
    ours.load_state_dict({**ours.state_dict(), "direction": direction})
    rows = make_members(ours.ask(0))[:-1].astype(np.float64)
    covariance = 0.25 * (np.eye(5) + direction @ direction.T)
    assert rows.T @ rows / 2000 == pytest.approx(covariance, abs=0.5)
    assert rows[0::2] == pytest.approx(-rows[1::2], abs=1e-6)


def test_the_library_that_others_import_stays_as_it_is():
    CRFMNES(CRFMNESSettings(), START, seed=3)
    assert crfmnes.alg.np is np and isinstance(np.random.randn(), float)  # noqa: NPY002


def test_the_default_number_of_members_is_even():
    assert len(CRFMNES(CRFMNESSettings(), np.zeros(100, np.float32), 0).ask(0)) == 18 + 1


def test_refuses_an_odd_number_of_members():
    with pytest.raises(ValueError, match=r"population_size must be an even number >= 4 .*got 9"):
        CRFMNESSettings(population_size=9)


def test_failed_members_are_sorted_by_the_length_of_their_noise():
    costs = np.full(20, np.inf)
    costs[[4, 9]] = 1.0, 0.0
    lengths = np.random.default_rng(0).permutation(20) + 1.0
    order = sort_by_cost_and_distance(costs, lengths[np.newaxis])
    assert order[:2].tolist() == [9, 4]
    assert lengths[order[2:]].tolist() == sorted(np.delete(lengths, [4, 9]))


def test_a_deviation_that_the_library_loses_stops_the_search_with_its_cause():
    search = Search("cr_fm_nes", np.zeros(20), population_size=64, sigma=0.1, seed=1)
    lost = pytest.raises(FloatingPointError, match=r"cr_fm_nes at sigma \S+ has lost the deviation of a weight")
    with lost:
        for _ in range(60):
            members = search.ask()
            search.tell(members.sum(axis=1))  # a slope without end; the last tell is not refused
    with lost:
        search.ask()


def test_refuses_parameters_too_few_to_search():
    CRFMNES(CRFMNESSettings(sigma=0.1), np.zeros(4, np.float32), 0)
    with pytest.raises(ValueError, match="cr_fm_nes needs at least 4 parameters, got 3"):
        CRFMNES(CRFMNESSettings(sigma=0.1), np.zeros(3, np.float32), 0)
