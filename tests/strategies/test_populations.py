import numpy as np
import pytest

from hebbes.execution.repeated_population import RepeatedPopulation
from hebbes.strategies.core.populations import GaussianPopulation

CENTER = np.linspace(-1, 1, 7, dtype=np.float32)


def make_population(**changes):
    return GaussianPopulation(
        **{"center": CENTER, "sigma": 0.5, "seed": 3, "generation": 4, "population_size": 6, **changes}
    )


def test_noise_of_the_default_sampler_is_one_stream_a_pair():
    noise = [np.random.Generator(np.random.PCG64(np.random.SeedSequence((3, 1, 4, pair, 0)))) for pair in range(3)]
    first = [rng.standard_normal(7, dtype=np.float32) for rng in noise]
    assert np.array_equal(
        make_population().weights([4, 5]), [CENTER + first[2] * 0.5, CENTER - first[2] * np.float32(0.5)]
    )


def test_a_sigma_for_each_parameter_scales_it_and_leaves_the_noise_alone():
    sigmas = np.linspace(0.1, 2.0, 7)
    rows, unit = (
        make_population(sigma=sigmas).weights(range(7)),
        make_population(center=0 * CENTER, sigma=1.0).weights(range(7)),
    )
    assert rows.dtype == np.float32
    assert rows == pytest.approx(CENTER + sigmas * unit, abs=1e-6)
    utilities = np.random.default_rng(0).normal(size=(2, 7))
    expected = make_population().weighted_noise_sums(range(7), utilities, (1, 2))
    assert np.array_equal(make_population(sigma=sigmas).weighted_noise_sums(range(7), utilities, (1, 2)), expected)


@pytest.mark.parametrize("sampler", ["normal", "antithetic", "orthogonal"])
def test_the_weighted_noise_sum_is_utility_times_noise_to_the_power(sampler):
    utilities = np.array([[0.3, -0.1, 0.0, 0.25, -0.5, 0.05, 9.0], [0, 1, -1, 0, 0, 2, 3], [0.5, 0, 0, 0.5, 2, 2, 1]])
    noise = make_population(center=0 * CENTER, sigma=1.0, sampler=sampler).weights(range(7)).astype(np.float64)
    noise[6] = 0
    totals = make_population(sampler=sampler).weighted_noise_sums(range(7), utilities, (1, 1, 2))
    assert totals == pytest.approx(np.stack([utilities[0] @ noise, utilities[1] @ noise, utilities[2] @ noise**2]))
    some, few = make_population(sampler=sampler), [4, 0, 6]
    totals = some.weighted_noise_sums(few, utilities[:, few], (1, 1, 2))
    expected = [utilities[0, few] @ noise[few], utilities[1, few] @ noise[few], utilities[2, few] @ noise[few] ** 2]
    assert totals == pytest.approx(np.stack(expected))


def test_a_repeated_policy_is_the_same_row():
    repeated = RepeatedPopulation(CENTER, 4)
    assert len(repeated) == 4
    assert np.array_equal(repeated.weights([1, 3]), [CENTER, CENTER])
