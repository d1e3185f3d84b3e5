"""The noise that strategies sum: each vector is drawn once for all sums of a generation."""

from dataclasses import replace

import numpy as np
import pytest

from hebbes.strategies.core.populations import GaussianPopulation
from tests.strategies.every_strategy import SUMS_NOISE, make_members, make_results, make_strategy, sphere


@pytest.mark.parametrize("name", SUMS_NOISE)
def test_the_weighted_noise_sum_is_linear_and_leaves_the_mean_policy_out(name):
    population = make_strategy(name).ask(0)
    last, powers = len(population) - 1, (1, 2)
    utilities = np.append(np.random.default_rng(0).normal(size=last), 5.0) * [[1.0], [-2.0]]
    whole = population.weighted_noise_sums(range(last + 1), utilities, powers)
    halves = [range(last // 2), range(last // 2, last + 1)]
    assert whole == pytest.approx(
        sum(population.weighted_noise_sums(ids, utilities[:, list(ids)], powers) for ids in halves)
    )
    assert not population.weighted_noise_sums([last], np.full((2, 1), 5.0), powers).any()
    assert np.isfinite(whole).all() and whole.any(axis=1).all()


@pytest.mark.parametrize("name", SUMS_NOISE)
def test_all_noise_is_summed_in_one_call_and_a_second_row_costs_no_second_draw(name, monkeypatch):
    strategy, calls, drawn = make_strategy(name), [], []
    population = strategy.ask(0)
    results = make_results(population, sphere(make_members(population)))
    draw = GaussianPopulation._draw_noise
    monkeypatch.setattr(GaussianPopulation, "_draw_noise", lambda self, ids: drawn.extend(ids) or draw(self, ids))

    def count_and_sum(utilities, powers):
        calls.append(np.count_nonzero(utilities, axis=0).max())
        return results.sum_noise(utilities, powers)

    strategy.tell(population, replace(results, sum_noise=count_and_sum))
    assert calls == [2 if strategy.has_sigma_per_parameter else 1]
    assert len(drawn) == len(set(drawn))
