"""Runs of every kind for the tests of reports, and the page about them."""

import shutil

from hebbes.programs.report import ReportConfig, make_sections
from hebbes.recording.console import Console
from hebbes.reporting.page.write_page import write_page
from tests.programs.sweeps import run as run_sweep
from tests.training.scripted_runs import make_config, train

HOSTILE = ("<script>alert(1)<", "script>")
"""Folders whose path is `<script>alert(1)</script>`."""
OPTIONS = {"environment": "CartPole-v1", "generations": 3, "threads": 1, "eval_every": 1, "eval_episodes": 2}
OPTIONS |= {"test_episodes": 0, "max_episode_steps": 60}
HEBBIAN = {"hidden_sizes": (4,), "population_size": 4}
HYBRID = {"environment": "Pendulum-v1", "algorithm": "td3", "max_env_steps": 800, "start_steps": 200, "eval_every": 400}


def make_runs(top):
    """Two seeds of one method, a run of another one with a hostile name, a Hebbian one, a hybrid and a sweep."""
    static = {**OPTIONS, "folder": str(top), "policy": "linear", "population_size": 6}
    for seed in (1, 2):
        train(make_config(**static, seed=seed, run_name=f"seed{seed}"))
    hostile = top.joinpath("CartPole-v1", *HOSTILE)
    shutil.copytree(train(make_config(**static, strategy="cem", run_name="cem")), hostile)
    shutil.rmtree(top / "CartPole-v1" / "cem")
    train(make_config("hebbian", **OPTIONS, **HEBBIAN, folder=str(top), run_name="hebbian"))
    hybrid = {name: value for name, value in OPTIONS.items() if name not in ("generations", "max_episode_steps")}
    train(make_config("hybrid", **{**hybrid, **HYBRID}, folder=str(top), run_name="td3"))
    run_sweep(top, trials=3, finalists=0, run_name="sweep", max_env_steps=2000)
    return top


def make_report(*paths, **options):
    """The sections of a report, and whether they are complete."""
    config = ReportConfig(runs=tuple(map(str, paths)), **{"episodes": 3, "threads": 1, **options})
    with Console() as console:
        return make_sections(config, console)


def write_report(path, *paths, **options):
    """Writes the page of a report."""
    sections, _ = make_report(*paths, **options)
    write_page(path, "Report on runs", ", ".join(map(str, paths)), sections)
