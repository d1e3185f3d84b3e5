"""The simulation of benchmarks/asynchrony.py, in cases that can be computed by hand."""

import json
from dataclasses import asdict

import pytest

from benchmarks.asynchrony import FIRST, LAST
from benchmarks.asynchrony_model import (
    Costs,
    Moment,
    Workers,
    extrapolate_costs,
    measure_seconds,
    simulate_aes_rl,
    simulate_generations,
)
from hebbes.execution.provenance import find_conditions
from tests.python_process import run_python

FREE = Costs(0, 0, 0, 0, 0, 0, 0)
SMALL = {"episode_length": 10, "hidden_sizes": [8], "gradient_steps": 5}
ROWS = [(algorithm, workers) for algorithm in ("aes_rl", "p_cem_rl", "cem_rl") for workers in (1, 2, 5, 9)]


def make_costs(**changes):
    return Costs(**{**vars(FREE), **changes})


def test_jobs_of_two_workers():
    workers = Workers(2)
    for name, seconds in (("a", 3), ("b", 1), ("c", 1), ("d", 2)):
        workers.submit(name, seconds)
    workers.submit("urgent", 0.5, urgent=True)
    done = [(workers.collect(), workers.now) for _ in range(5)]
    # a: 0 to 3. The other worker: b to 1, urgent to 1.5, c to 2.5, d to 4.5; a's worker finds nothing to do.
    assert done == [("b", 1), ("urgent", 1.5), ("c", 2.5), ("a", 3), ("d", 4.5)]


@pytest.mark.parametrize(("count", "seconds"), [(1, 10), (2, 6), (3, 6), (9, 4)])
def test_a_phase_lasts_until_its_last_job(count, seconds):
    workers = Workers(count)
    workers.do_all([2, 2, 2, 4])
    assert workers.now == seconds


def test_a_late_owner_hands_out_late():
    workers = Workers(1)
    workers.submit("a", 1)
    workers.submit("b", 1)
    workers.now = 5.0
    assert (workers.collect(), workers.now) == ("a", 5)
    assert (workers.collect(), workers.now) == ("b", 6)


@pytest.mark.parametrize(
    ("num_workers", "is_parallel", "second"),
    [
        # 100 critic steps of 3, then 5 times 100 actor steps of 7, or 100 of all at once that take 11; episodes of
        # 10 env steps: ten in turn, five rounds of two, or two of five; tell
        (1, False, 300 + 3500 + 100 + 0.5),
        (2, False, 300 + 3500 + 50 + 0.5),
        (5, True, 300 + 1100 + 20 + 0.5),
    ],
)
def test_generations_by_hand(num_workers, is_parallel, second):
    costs = make_costs(env_step=1, critic_step=3, actor_step=7, group_step=11, tell=0.5)
    options = {"episode_length": 10, "env_steps": 200, "is_parallel": is_parallel}
    start, first, end = simulate_generations(costs, num_workers, **options)
    rounds = {1: 10, 2: 5, 5: 2}[num_workers]
    assert (start, first) == (Moment(0, 0, 0), Moment(10 * rounds + 0.5, 100, 0))
    assert end == Moment(first.seconds + second, 200, 100)


def test_one_worker_without_gradients_by_hand():
    costs = make_costs(env_step=1, tell=0.5)
    moments = simulate_aes_rl(costs, 1, episode_length=10, env_steps=30, start_steps=10)
    # the first acts at random until 10, then critics for no time; each individual: 10 and 5 * 10 of the mean, tell
    assert moments[1:] == [Moment(10 + 60.5, 20, 1000), Moment(10 + 2 * 60.5, 30, 1000)]


def test_the_critics_take_one_of_two_workers():
    costs = make_costs(env_step=1, critic_job_step=1)
    moments = simulate_aes_rl(costs, 2, episode_length=10, env_steps=60, start_steps=10)
    # Two act at random until 10. Then the critics keep one worker until 1010. On the other one: a until 20;
    # five episodes of the mean for a until 70; b, which waited, until 80; for b until 130; c until 140, and so on.
    assert moments[1:] == [Moment(70, 30, 0), Moment(130, 40, 0), Moment(190, 50, 0), Moment(250, 60, 0)]


def test_half_of_the_individuals_are_trained_for_ten_episodes_each():
    costs = make_costs(actor_job_step=1)
    moments = simulate_aes_rl(costs, 1, episode_length=10, env_steps=20_000, start_steps=100)
    assert measure_seconds(moments, 1000, 20_000) / 19_000 == pytest.approx(0.5 * 10, rel=0.05)


def test_workers_that_are_never_idle_are_twice_as_fast():
    costs = make_costs(env_step=1e-3, actor_job_step=1.0)
    seconds = [
        measure_seconds(simulate_aes_rl(costs, n, episode_length=10, env_steps=40_000, start_steps=100), 4000, 40_000)
        for n in (1, 2, 4)
    ]
    assert seconds[0] / seconds[1] == pytest.approx(2, rel=0.05)
    assert seconds[0] / seconds[2] == pytest.approx(4, rel=0.05)


def test_extrapolation_and_interpolation():
    one, two = make_costs(actor_step=3, group_step=15, critic_step=4), make_costs(group_step=8, critic_step=2)
    assert extrapolate_costs(one, two, 5) == make_costs(group_step=3, critic_step=2)
    assert extrapolate_costs(one, two, 4).group_step == 6
    assert measure_seconds([Moment(0, 0, 0), Moment(10, 100, 0), Moment(30, 200, 0)], 50, 150) == 15


def make_results(costs):
    here = find_conditions()
    made_with = {**SMALL, "generations": [FIRST, LAST], "hebbes": here["hebbes"], "cpu": here["cpu"]}
    found = {"made_with": made_with, "costs 1": asdict(costs), "costs 2": asdict(costs)}
    measured = {"seconds": 0.01, "rl_share": 0.5}
    return found | {f"measured {algorithm} {workers}": measured for algorithm, workers in ROWS if workers < 3}


def run_benchmark(*flags, **status):
    sizes = [text for name, value in SMALL.items() for text in (f"--{name}", str(value).strip("[]"))]
    return run_python("-m", "benchmarks.asynchrony", *sizes, *flags, **status)


@pytest.mark.slow
def test_results_that_the_file_has_are_not_measured_again(tmp_path):
    results, figure = tmp_path / "results.json", tmp_path / "figure.png"
    costs = make_costs(env_step=1e-3, critic_step=2e-3, actor_step=1e-3, group_step=4e-3)
    found = make_results(costs)
    results.write_text(json.dumps(found))
    done = run_benchmark("--results", results, "--figure", figure, "--json")
    rows = json.loads(done.stdout)
    assert [(row["algorithm"], row["workers"]) for row in rows] == ROWS
    seconds = {(row["algorithm"], row["workers"]): row["simulated"] for row in rows}
    # a critic step, a step of five actors, and one env step on one of so many workers
    assert seconds["cem_rl", 1] == pytest.approx(2 + 5 + 1)
    assert seconds["p_cem_rl", 1] == pytest.approx(2 + 4 + 1)
    assert seconds["p_cem_rl", 5] == pytest.approx(2 + 1 + 0.2)
    assert [row.get("measured") for row in rows[:4]] == [10, 10, None, None]
    assert figure.read_bytes().startswith(b"\x89PNG")
    assert json.loads(results.read_text()) == found
    refused = run_benchmark("--results", results, "--episode_length", 11, status=1)
    assert "has results of {'episode_length': 10," in refused.stderr


@pytest.mark.slow
def test_costs_and_runs_are_measured(tmp_path):
    results, lacking = tmp_path / "results.json", {"costs 2", "measured aes_rl 2", "measured cem_rl 1"}
    given = {name: value for name, value in make_results(make_costs(env_step=1e-3)).items() if name not in lacking}
    results.write_text(json.dumps(given))
    done = run_benchmark("--results", results, "--json")
    assert [(row["algorithm"], row["workers"]) for row in json.loads(done.stdout)] == ROWS
    found = json.loads(results.read_text())
    assert found.keys() - given.keys() == lacking
    aes_rl, cem_rl = found["measured aes_rl 2"], found["measured cem_rl 1"]
    assert aes_rl["seconds"] > 0 and 0 < aes_rl["rl_share"] < 1 and cem_rl["seconds"] > 0 and cem_rl["rl_share"] == 0.5
    # a difference of two measured times, which noise may make negative, and which is then 0
    assert all(value > 0 or name == "actor_job_step" for name, value in found["costs 2"].items())
