"""The benchmarks run and print their figures; what the figures are is not a test's business."""

import json

import numpy as np
import pytest

from benchmarks import interval_errors, startup
from benchmarks.attractors import measure_change
from benchmarks.kept_results import KeptResults
from benchmarks.optimizers import Budget, Problem, format_median, run_ours
from hebbes.evaluation.weight_recording import WeightRecording
from hebbes.registry.lookup import list_names
from tests.python_process import run_python

PLASTICITY = {
    "ours_ms",
    "plain_loop_ms",
    "ours_ns_per_synapse",
    "ours_gb_per_s",
    "plain_loop_gb_per_s",
    "share_of_bandwidth",
}
NOISES, UNITS = ("full_rank", "low_rank"), ("second", "cpu_second")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "keys"),
    [
        (
            ["throughput", "--environment", "CartPole-v1", "--popsize", "4", "--max_episode_steps", "20"],
            {"environment", "threads", "env_steps_per_second", "bare_env_steps_per_second", "ratio"},
        ),
        (
            ["low_rank", "--popsize", "4", "--hidden_sizes", "4", "--max_episode_steps", "20"],
            {
                f"{policy}_{figure}"
                for policy in ("untrained", "trained")
                for figure in (
                    "episode_length",
                    *(f"{noise}_env_steps_per_{unit}" for noise in NOISES for unit in UNITS),
                    *(f"env_steps_per_{unit}_ratio" for unit in UNITS),
                )
            },
        ),
        (["sampling", "--members", "4", "--params", "100"], {"seconds", "cpu_seconds", "megabytes"}),
    ],
)
def test_prints_its_figures_as_json(command, keys):
    figures = _figures("-m", f"benchmarks.{command[0]}", *command[1:])
    assert set(figures) == keys
    assert all(value > 0 for value in figures.values() if not isinstance(value, str))


@pytest.mark.slow
@pytest.mark.parametrize(
    "axes",
    [
        ["--modulation", "reward", "--eligibility", "--normalization", "clip"],
        ["--rule", "neural_9", "--sharing", "layer"],
    ],
)
def test_plastic_layers_are_timed_with_any_axes(axes):
    figures = _figures("-m", "benchmarks.plasticity", "--members", "2", *axes)
    assert set(figures) == PLASTICITY
    assert all(value > 0 for value in figures.values())


@pytest.mark.slow
def test_the_parts_of_an_env_step_are_timed():
    small = ["--environment", "CartPole-v1", "--popsize", "4", "--max_episode_steps", "20", "--generations", "2"]
    lines = _run("-m", "benchmarks.loop_profile", *small).splitlines()
    microseconds = {line[:32].rstrip(): float(line[32:]) for line in lines}
    layers = "policy: dense layers"
    assert {"EnvPool: receive", "arrays of EnvPool", layers, "returns and checks"} <= microseconds.keys()
    assert 0 < microseconds[layers] < microseconds["(generation, processor time)"]


@pytest.mark.slow
@pytest.mark.parametrize("trainer", ["static", "hebbian"])
def test_training_is_timed_with_several_chunk_sizes(trainer):
    small = ["--environment", "CartPole-v1", "--popsize", "4", "--max_episode_steps", "20"]
    speeds = _figures("-m", "benchmarks.chunk_sizes", "--trainer", trainer, "--sizes", "1", "3", *small)
    assert speeds.keys() == {"1", "3"} and min(speeds.values()) > 0


@pytest.mark.slow
def test_training_is_timed_with_simulators_that_sleep():
    options = ["--environment", "HalfCheetah-v5", "--popsize", "4", "--max_episode_steps", "20"]
    found = _figures("-m", "benchmarks.many_cores", "--threads", "4", "--microseconds", "100", *options)
    assert found["without_waiting"] == 40_000 and 0 < found["ratio"] < 1
    assert found["ratio"] == found["env_steps_per_second"] / 40_000


@pytest.mark.slow
def test_a_forward_pass_is_timed_beside_that_of_torch():
    microseconds = _figures("-m", "benchmarks.policy_forward", "--members", "2")
    assert {"cnn_us_per_member", "torch_cnn_us_per_member", "cnn_speedup"} <= microseconds.keys()
    assert all(value > 0 for value in microseconds.values())


@pytest.mark.slow
def test_td3_is_trained_beside_that_of_stable_baselines3(tmp_path):
    pytest.importorskip("stable_baselines3", reason="tests/hybrids/requirements.txt is not installed")
    small = ["--environment", "Pendulum-v1", "--env_steps", "300", "--start_steps", "200", "--num_seeds", "1"]
    table = _run("-m", "benchmarks.td3_returns", *small, "--eval_every", "200", "--results", str(tmp_path))
    assert [line.split()[:2] for line in table.splitlines()] == [["hebbes", "IQM"], ["stable_baselines3", "IQM"]]


@pytest.mark.slow
def test_every_strategy_is_measured_on_the_test_functions():
    small = ["--problems", "sphere", "rastrigin", "--dimensions", "10", "--seeds", "1", "--evaluations", "300"]
    rows = _figures("-m", "benchmarks.optimizers", *small)
    found = {(row["problem"], row["strategy"]): row["ours"] for row in rows}
    assert found.keys() == {(problem, name) for problem in ("sphere", "rastrigin") for name in list_names("strategy")}
    assert all(float(value) > 0 for (problem, _), value in found.items() if problem == "rastrigin")


def test_only_a_covariance_that_does_not_fit_is_passed_over():
    budget = Budget(seeds=1, seconds=1.0, evaluations=10)
    assert format_median(run_ours, "cma_es", Problem("sphere", 100_000), budget) == "n/a"
    with pytest.raises(ValueError, match="sep_cma_es needs at least 2 parameters"):
        format_median(run_ours, "sep_cma_es", Problem("sphere", 1), budget)


@pytest.mark.slow
def test_the_start_of_programs_is_measured_beside_a_bare_import():
    names = {"static_help", "hebbian_unknown_flag"}
    seconds = _figures("-m", "benchmarks.startup", "--turns", "1", "--commands", *sorted(names))
    assert seconds.keys() == {"bare", *names}
    assert all(value > 0 for value in seconds.values())


def test_intervals_of_few_runs_miss_the_truth_more_often_than_they_say():
    found = interval_errors.measure(5, 300)
    assert found.keys() == {"mean", "IQM", "probability of improvement", "mean difference"}
    assert all(5 < percent < 30 for percent in found.values())


def test_the_table_of_starts_says_which_bars_are_kept():
    lines = startup.format_rows({"bare": 0.1, "static_help": 0.4, "static_unknown_environment": 1.1}).splitlines()
    assert [line.split() for line in lines[1:]] == [
        ["bare", "0.100", "1.00"],
        ["static_help", "0.400", "4.00", "4", "kept"],
        ["static_unknown_environment", "1.100", "11.00", "10", "missed"],
    ]


def test_a_command_that_ends_with_another_status_ends_the_measurement(monkeypatch):
    monkeypatch.setitem(startup.COMMANDS, "wrong", startup.Command(("-c", "raise SystemExit('a reason')"), 0))
    with pytest.raises(SystemExit, match=r"wrong ended with status 1, not 0:\na reason"):
        startup.measure(["wrong"], 1)


def _figures(*command):
    return json.loads(_run(*command, "--json"))


def _run(*command):
    done = run_python(*command)
    return done.stdout


def test_what_is_kept_is_not_measured_again(tmp_path, capsys):
    path, calls = tmp_path / "results.json", []

    def count():
        calls.append(1)
        return len(calls)

    def fail():
        raise KeyboardInterrupt

    kept = KeptResults(path)
    with pytest.raises(KeyboardInterrupt):
        kept.measure({"a": count, "b": fail, "c": count})
    again = KeptResults(path)
    again.measure({"a": fail, "b": count})
    written = json.loads(path.read_text())
    assert again.by_name == {"a": 1, "b": 2} and written == {"made_with": written["made_with"], **again.by_name}
    assert capsys.readouterr().err == "a 1\nb 2\n"


@pytest.mark.parametrize("change", [{"cpu": "another"}, {"hebbes": "abc"}, {"size": 2}, None])
def test_what_was_measured_elsewhere_is_not_mixed_with_what_is_measured_here(tmp_path, change):
    path = tmp_path / "results.json"
    KeptResults(path, {"size": 1}).measure({"a": lambda: 1})
    assert KeptResults(path, {"size": 1}).by_name == {"a": 1}
    written = json.loads(path.read_text())
    path.write_text(json.dumps({"a": 1, **({"made_with": {**written["made_with"], **change}} if change else {})}))
    with pytest.raises(SystemExit, match=r"results\.json has results of .*; take a new file"):
        KeptResults(path, {"size": 1})


def test_the_change_of_a_weight_is_that_of_an_env_step():
    changes = np.array([[1.0, 3.0], [2.0, 6.0], [100.0, 100.0]])  # of two layers, at the updates
    recording = WeightRecording([np.zeros((20, 2), np.float32)], np.array([4, 8, 16]), changes)
    assert measure_change(recording, 0, 10) == pytest.approx((2 + 4) / 10)
    assert np.isnan(measure_change(recording, 0, 21))  # it ended before
