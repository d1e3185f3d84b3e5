"""Sweeps of short trials for the tests."""

import contextlib
import io

from optuna.trial import TrialState

from hebbes.programs.sweep import open_study, read_options, run_sweep
from hebbes.recording.console import Console

DONE = (TrialState.COMPLETE, TrialState.PRUNED)


def make_arguments(folder, **changes):
    """The command line of a sweep of short trials in CartPole-v1."""
    options = {"environment": "CartPole-v1", "strategy": "openai_es", "max_env_steps": 4000, "trials": 6}
    options |= {"folder": folder, "threads": 1, "eval_every": 1, "eval_episodes": 2, "test_episodes": 2}
    options |= {"finalists": 1, "final_seeds": 2, **changes}
    return [f"--{name}={value}" for name, value in options.items() if value is not None]


def open_sweep(folder, **changes):
    """What `run_sweep` takes."""
    options, config = read_options(make_arguments(folder, **changes), "")
    return options, open_study(options, config)


def run(folder, **changes):
    """Runs a sweep in this process; returns its study and its output."""
    opened, output = open_sweep(folder, **changes), io.StringIO()
    with contextlib.redirect_stdout(output):
        run_sweep(*opened, Console())
    return opened[-1], output.getvalue()
