"""What ends a trial: an environment that fails ends the sweep too, a search that diverges only the trial."""

import pytest

from hebbes.programs.sweeps.jobs import execute_briefly
from hebbes.recording.console import Console
from hebbes.training.advice import TrainingError
from hebbes.training.prepare import prepare
from tests.training.scripted_runs import make_scripted_config


def test_an_environment_that_fails_stops_a_sweep_and_a_search_that_diverges_does_not(tmp_path):
    (broken,) = prepare(make_scripted_config(tmp_path, run_name="broken", env_kwargs={"raise_at": 1}))
    with pytest.raises(TrainingError, match="generation 1: every member failed: RuntimeError: scripted failure"):
        execute_briefly(broken, "broken", Console())
    rates = {"learning_rate": 1e39, "learning_rate_decay": 1.0, "observation_normalization": False}
    (diverging,) = prepare(make_scripted_config(tmp_path, run_name="diverging", **rates))
    assert execute_briefly(diverging, "diverging", Console()) is None
