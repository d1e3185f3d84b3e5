"""A dozen kills with every kind of simulator; run by `make reliability`."""

import numpy as np
import pytest
from killed_runs import CONFIGURATIONS, KilledRun

KILLS = 12


@pytest.mark.parametrize("environment", CONFIGURATIONS)
def test_many_kills_change_nothing(environment, tmp_path, tell):
    run = KilledRun(environment, tmp_path, np.random.default_rng(11))
    found = run.execute(KILLS)
    tell(run.format_line(found), kills=run.counts["kills"])
    assert not found
    assert run.counts["in training"] >= KILLS // 2
