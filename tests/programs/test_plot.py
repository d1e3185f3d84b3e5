"""The program `plot` on real runs."""

import csv
import re
import shutil
from dataclasses import replace

import numpy as np
import pytest

from hebbes.programs.plot import PlotConfig, make_plot
from hebbes.programs.run_environments import describe_caps
from hebbes.recording.metrics import read_metrics
from hebbes.training.saved_runs import read_saved_run
from tests.programs.commands import call_command, run_command
from tests.recording.screens import start
from tests.training.scripted_runs import make_config, make_scripted_config, train


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """A folder with two seeds of openai_es and one run of cem."""
    top = tmp_path_factory.mktemp("weights")
    for seed in (1, 2):
        train(make_scripted_config(top, seed=seed, run_name=f"seed{seed}", generations=4))
    train(make_scripted_config(top, strategy="cem", population_size=6, run_name="cem", generations=3))
    for file in top.rglob("metrics.csv"):  # whose times need not overlap on a busy machine
        with file.open(newline="") as opened:
            rows = [{**row, "seconds": str(number)} for number, row in enumerate(csv.DictReader(opened), 1)]
        with file.open("w", newline="") as opened:
            writer = csv.DictWriter(opened, rows[0])
            writer.writeheader()
            writer.writerows(rows)
    return top


def make(runs, **options):
    return make_plot(PlotConfig(runs=(str(runs),), **options))


def find_line(figure, label):
    (line,) = (line for line in figure.axes[0].lines if line.get_label() == label)
    return line.get_xydata()


def test_seeds_of_a_method_are_averaged_against_env_steps(runs):
    figure = make(runs, statistic="mean")
    returns = [read_metrics(runs / "Scripted-v0" / f"seed{seed}" / "metrics.csv") for seed in (1, 2)]
    drawn = find_line(figure, "openai_es (2 runs)")
    assert drawn[:, 0].tolist() == returns[0]["env_steps"].tolist()
    assert drawn[:, 1] == pytest.approx(np.mean([each["eval_return"] for each in returns], axis=0))
    assert figure.get_suptitle().startswith("Scripted-v0 action_weight=1.0 rewards=[0.0]")
    assert len(find_line(figure, "cem (1 run)")) == 3


def test_a_run_that_is_named_in_two_ways_counts_once(runs, monkeypatch):
    monkeypatch.chdir(runs)
    figure = make_plot(PlotConfig(runs=("Scripted-v0/cem", str(runs / "Scripted-v0" / "cem"))))
    assert len(find_line(figure, "cem (1 run)")) == 3


@pytest.mark.parametrize(("x", "label"), [("unit", "generation"), ("seconds", "wall time of training in seconds")])
def test_the_horizontal_axis_can_be_chosen(runs, x, label):
    figure = make(runs, x=x, metric="return_mean")
    assert (figure.axes[0].get_xlabel(), figure.axes[0].get_ylabel()) == (label, "return_mean")


def test_profiles_are_of_the_last_values(runs):
    last = read_metrics(runs / "Scripted-v0" / "cem" / "metrics.csv")["eval_return"][-1]
    drawn = find_line(make(runs, profiles=True), "cem (1 run)")
    assert drawn[drawn[:, 1] == 1, 0].max() < last <= drawn[drawn[:, 1] == 0, 0].min()


def test_capped_training_episodes_are_said_on_every_figure(tmp_path):
    options = {"environment": "CartPole-v1", "folder": str(tmp_path), "generations": 2, "threads": 1, "eval_every": 1}
    options |= {"policy": "linear", "population_size": 4, "test_episodes": 0}
    folder = train(make_config(**options, max_episode_steps=50))
    note = "training episodes are cut after 50 env steps, evaluations after 500"
    assert make(folder).axes[0].get_title().replace("\n", " ") == note
    assert note in make(folder, profiles=True).axes[0].get_title().replace("\n", " ")
    run = read_saved_run(folder)
    assert describe_caps([run]) == note
    assert describe_caps([replace(run, options={**run.options, "environment": "Mine-v0"})]) == ""  # it is not imported
    uncapped = train(make_config(**options, seed=1, max_episode_steps=500))
    assert make(uncapped).axes[0].get_title() == ""
    shorter = {"gymnasium_wrappers": ("TimeLimit: {max_episode_steps: 40}",), "env_kwargs": {"max_episode_steps": -1}}
    limited = train(make_config(**options, seed=2, max_episode_steps=20, **shorter))
    assert make(limited).axes[0].get_title().replace("\n", " ") == note.replace("500", "40").replace("50", "20")


def test_runs_whose_evaluations_are_cut_differently_are_not_drawn_together(tmp_path):
    options = {"environment": "CartPole-v1", "env_kwargs": {"max_episode_steps": -1}, "folder": str(tmp_path)}
    options |= {"policy": "linear", "population_size": 4, "generations": 1, "threads": 1, "test_episodes": 0}
    folders = [train(make_config(**options, max_episode_steps=cap, run_name=f"up_to_{cap}")) for cap in (20, 30)]
    assert make(folders[0]).get_suptitle() == "CartPole-v1 max_episode_steps=-1 up to 20 env steps"
    with pytest.raises(ValueError, match=r"of one environment, got .* up to 20 env steps in .* up to 30 env steps in "):
        make(tmp_path)


def test_a_column_without_values_is_refused(tmp_path):
    options = {"environment": "CartPole-v1", "folder": str(tmp_path), "generations": 1, "threads": 1}
    folder = train(make_config(**options, policy="linear", population_size=4, test_episodes=0))
    with pytest.raises(ValueError, match=r"^metric 'saturated_actions' has no value in .* yet$"):
        make(folder, metric="saturated_actions")  # there are none, because actions are whole numbers


def test_a_horizontal_axis_that_is_not_in_the_file_is_refused(tmp_path):
    folder = train(make_scripted_config(tmp_path, generations=1))
    path = folder / "metrics.csv"
    path.write_text(path.read_text().replace(",seconds", ",moments"))
    with pytest.raises(ValueError, match=r"^x 'seconds' is not in "):
        make(folder, x="seconds")


def test_runs_that_count_other_units_have_no_common_axis_of_units(runs, tmp_path):
    shutil.copytree(runs, tmp_path / "runs")
    (folder,) = (tmp_path / "runs").rglob("cem")
    path = folder / "metrics.csv"
    path.write_text(path.read_text().replace("generation,", "episode,", 1))
    with pytest.raises(ValueError, match=r"^x unit needs runs that count the same, got .*generation in .*/"):
        make(tmp_path / "runs", x="unit")


def test_the_command_writes_png_and_svg(runs, tmp_path, capfd):
    png, svg = tmp_path / "a.png", tmp_path / "a.svg"
    done = run_command("plot", runs / "Scripted-v0", "-o", png)
    assert (done.returncode, done.stdout) == (0, f"plot  {png}\n"), done.stderr
    assert call_command(capfd, "plot", runs / "Scripted-v0", "-o", svg) == f"plot  {svg}\n"
    assert png.read_bytes().startswith(b"\x89PNG") and svg.read_bytes().startswith(b"<?xml")


def test_a_terminal_shows_that_it_is_drawing(runs, tmp_path):
    program = start("-m", "hebbes", "plot", runs, "-o", tmp_path / "a.png")
    assert program.read(lambda screen: "drawing" in screen.below)
    program.read()
    assert (program.status, program.screen.below) == (0, "")
    assert "".join(program.screen.text.split()) == f"plot{tmp_path}/a.png"


def test_what_cannot_be_drawn_is_one_line_and_status_2(runs, tmp_path, refusal):
    other = train(make_scripted_config(tmp_path, environment="Pendulum-v1", env_kwargs={}, generations=1))
    new = tmp_path / "new"
    (new / "checkpoint").mkdir(parents=True)
    (new / "checkpoint" / "00000000.ckpt").write_bytes(next((other / "checkpoint").glob("*1.ckpt")).read_bytes())
    slower = train(make_scripted_config(tmp_path, environment="Pendulum-v1", env_kwargs={"g": 9.0}, run_name="slower"))
    cases = [
        ([runs, other], "runs of one environment, got Scripted-v0 .* in .*, Pendulum-v1 in "),
        ([other, slower], "runs of one environment, got Pendulum-v1 in .*, Pendulum-v1 g=9.0 in "),
        ([new], "new.metrics.csv has no rows yet"),
        ([tmp_path / "nothing"], "nothing is not there"),
        ([runs, "--metric", "eval_retrun"], "'eval_retrun' is not in .*, did you mean 'eval_return'"),
        ([runs, "--output", tmp_path / "no" / "a.png"], "the folder .* does not exist"),
        ([runs, "--profiles", "--x", "seconds"], "x has no effect on profiles, got seconds"),
        ([runs, "--profiles", "--statistic", "mean"], "statistic has no effect on profiles, got mean"),
        ([runs, "--x", "time"], "x must be one of env_steps, unit, seconds"),
        ([""], "runs must name folders of runs"),
        ([], "runs must name folders of runs"),
        (["--columns", runs], "runs must be named first, before --columns"),
    ]
    for arguments, expected in cases:
        line = refusal("plot", *arguments)
        assert re.search(expected, line), line


def test_a_run_of_a_folder_that_has_no_metrics_yet_is_left_out(tmp_path, capsys):
    folder = train(make_scripted_config(tmp_path, generations=1))
    new = folder.with_name("without metrics")
    (new / "checkpoint").mkdir(parents=True)
    (new / "checkpoint" / "00000000.ckpt").write_bytes(next((folder / "checkpoint").glob("*1.ckpt")).read_bytes())
    make_plot(PlotConfig(runs=(str(folder.parent),)))
    assert capsys.readouterr().err == f"left out  {new}: it has no metrics that can be read\n"


def test_so_is_one_that_has_not_been_evaluated_yet(runs, tmp_path, capsys):
    shutil.copytree(runs, tmp_path / "runs")
    (late,) = (tmp_path / "runs").rglob("cem")
    header, first, *_ = (late / "metrics.csv").read_text().splitlines(keepends=True)
    values = dict(zip(header.strip().split(","), first.strip().split(","), strict=True))
    (late / "metrics.csv").write_text(header + ",".join({**values, "eval_return": ""}.values()) + "\n")
    assert len(make(tmp_path / "runs").axes[0].get_legend_handles_labels()[1]) == 1
    assert capsys.readouterr().err == f"left out  {late}: metric 'eval_return' has no finite value yet\n"
