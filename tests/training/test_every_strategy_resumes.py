"""A run of every strategy that is stopped and resumed from its checkpoint ends like an uninterrupted one."""

import pytest

from hebbes.options.command_line import parse_config
from hebbes.training.prepare import prepare
from hebbes.training.run import execute
from tests.strategies.every_strategy import SETTINGS, STRATEGY_NAMES
from tests.training.scripted_runs import make_scripted_config, read_outcome, train

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("name", STRATEGY_NAMES)
def test_a_run_stopped_and_resumed_is_the_run_never_stopped(name, tmp_path):
    config = {"strategy": name, **SETTINGS[name]}
    whole = train(make_scripted_config(tmp_path, run_name="whole", generations=6, **config))
    stopped = train(make_scripted_config(tmp_path, run_name="stopped", generations=3, **config))
    flags = ["--resume", str(stopped), "--import", "tests.scripted", "--generations", "6"]
    (run,) = prepare(parse_config("static", flags, ""))
    assert run.progress.units == 3
    execute(run)
    assert read_outcome(stopped) == read_outcome(whole)
