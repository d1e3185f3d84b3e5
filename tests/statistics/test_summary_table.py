"""Tables of evaluations: what stands in their lines."""

import numpy as np

from hebbes.statistics.summary_table import summarize_runs


def test_the_unit_of_runs_is_the_mean_of_their_episodes():
    summary = summarize_runs([np.array([0.0, 0, 9]), np.array([5.0, 5, 5])])
    assert (summary.units, summary.mean.value, summary.minimum, summary.maximum) == (2, 4.0, 3.0, 5.0)
