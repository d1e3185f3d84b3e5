"""Whole runs of every strategy: stopped, read back from the checkpoint's file, and in the end the same."""

import pytest

from hebbes.options.command_line import parse_configs
from hebbes.registry.lookup import lookup
from hebbes.training.prepare import prepare
from hebbes.training.run import execute
from tests.strategies.every_strategy import FOUND, SETTINGS
from tests.training.scripted_runs import outcome, scripted_config, train


@pytest.mark.parametrize("name", FOUND)
def test_a_run_stopped_and_resumed_is_the_run_never_stopped(name, tmp_path):
    config = {"strategy": name, "settings": lookup("strategy", name).Settings(**SETTINGS[name])}
    whole = train(scripted_config(tmp_path, run_name="whole", generations=6, **config))
    stopped = train(scripted_config(tmp_path, run_name="stopped", generations=3, **config))
    flags = ["--resume", str(stopped), "--import", "tests.scripted", "--generations", "6"]
    (run,) = prepare(*parse_configs("static", flags, ""))
    assert run.progress.generation == 3
    execute(run)
    assert outcome(stopped) == outcome(whole)
