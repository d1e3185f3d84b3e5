"""A run whose process is killed again and again ends with the same bits as an undisturbed run."""

import numpy as np
import pytest
from killed_runs import KilledRun, kill_at_operations

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(("environment", "kills"), [("CartPole-v1", 3), ("Pendulum-v1", 1)])
def test_kills_change_nothing(environment, kills, tmp_path, tell):
    run = KilledRun(environment, tmp_path, np.random.default_rng(3))
    found = run.execute(kills)
    tell(run.format_line(found), kills=run.counts["kills"])
    assert not found
    assert run.counts["in training"] >= (kills + 1) // 2
    assert run.counts["workers killed"] == (environment == "Pendulum-v1")


def test_kills_of_a_run_with_segments_change_nothing(tmp_path, tell):
    kill_at_operations("replay", 60, tmp_path, tell)
