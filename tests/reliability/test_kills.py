"""A run whose process is killed again and again ends with the bits of one that was left alone."""

import numpy as np
import pytest
from killed_runs import KilledRun


@pytest.mark.parametrize(("environment", "kills"), [("CartPole-v1", 3), ("Pendulum-v1", 1)])
def test_kills_change_nothing(environment, kills, tmp_path, tell):
    run = KilledRun(environment, tmp_path, np.random.default_rng(3))
    found = run.execute(kills)
    tell(run.line(found), kills=run.figures["kills"])
    assert not found
    assert run.figures["in training"] >= (kills + 1) // 2
    assert run.figures["workers killed"] == (environment == "Pendulum-v1")
