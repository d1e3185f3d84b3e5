import numpy as np
import pytest

import hebbes
from hebbes.strategies.core.adaptive import AdaptiveSettings, CovarianceTooLargeError, check_memory
from hebbes.strategies.core.spread import check_spread, compute_move_metrics


@pytest.mark.parametrize(("num_params", "members"), [(2, 6), (10, 10), (100, 17), (1000, 24), (12_288, 32)])
def test_the_default_number_of_members_is_that_of_the_tutorial(num_params, members):
    assert AdaptiveSettings().choose_population_size(num_params) == members
    assert AdaptiveSettings(population_size=30).choose_population_size(num_params) == 30


def test_too_much_memory_is_refused_with_the_amount():
    check_memory("xnes", 1000, 24, fixed=60)
    with pytest.raises(CovarianceTooLargeError, match=r"cma_es would need 67\.5 GiB .* 12288 parameters.*sep_cma_es"):
        check_memory("cma_es", 12_288, 20, fixed=20, per_member=2)  # 60 * 12288^2 * 8 / 2^30


def test_the_largest_population_that_fits_is_named():
    check_memory("cma_es", 1024, 250, fixed=12, per_member=2)  # 512 matrices of 8 MiB are allowed
    for population_size in (251, 10**9):
        with pytest.raises(
            ValueError, match=f"population_size {population_size} would need .* must be <= 250"
        ) as refused:
            check_memory("cma_es", 1024, population_size, fixed=12, per_member=2)
        assert not isinstance(refused.value, CovarianceTooLargeError)


@pytest.mark.parametrize("deviation", [1e-9, np.full(2, 1e-9), 1e31, np.nan, np.array([np.nan, 1.0])])
def test_noise_that_is_too_small_or_out_of_bounds_is_an_error(deviation):
    with pytest.raises(FloatingPointError, match="sigma"):
        check_spread(np.array([1.0, -2.0], np.float32), deviation)


@pytest.mark.parametrize("deviation", [1e-3, np.array([1e-9, 1e-3])])
def test_noise_that_changes_some_weight_is_accepted(deviation):
    check_spread(np.array([1.0, -2.0], np.float32), deviation)


def test_metrics_of_a_step():
    step, mean = np.array([3.0, 0.0, 0.0, 0.0]), np.array([3.0, 4.0, 0.0, 0.0])
    metrics = compute_move_metrics(np.float64(0.5), 0.5, step, mean)
    assert metrics == {"sigma": 0.5, "update_norm": 3.0, "update_over_sigma": 3.0, "mean_norm": 5.0}


def test_each_weight_moves_in_units_of_its_own_sigma():
    moved = compute_move_metrics(1.0, np.array([0.1, 10.0]), np.array([0.3, 40.0]), np.ones(2))
    assert moved["update_over_sigma"] == pytest.approx(np.sqrt((3**2 + 4**2) / 2))


@pytest.mark.parametrize("name", ["sep_cma_es", "cma_es", "cr_fm_nes", "xnes"])
def test_so_it_does_in_every_strategy_that_has_one_for_each(name):
    scales = 10.0 ** np.arange(5)
    search = hebbes.Search(name, np.ones(5), sigma=0.5)
    for _ in range(60):
        candidates = search.ask()
        before, deviations = search.mean, search._strategy._compute_deviations()
        metrics = search.tell(-(scales * np.square(candidates)).sum(axis=1))
    assert deviations.max() > 3 * deviations.min()
    move = (search.mean.astype(np.float64) - before) / deviations
    assert metrics["update_over_sigma"] == pytest.approx(np.sqrt(np.square(move).mean()), rel=1e-3)
