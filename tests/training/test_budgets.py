"""Budgets of a generation and of a run, the fitness, and the metrics of a generation."""

import itertools
from math import ceil

import numpy as np
import pytest

from hebbes.files.checkpoint import load_newest_checkpoint
from hebbes.files.policy_file import read_policy_file
from hebbes.options.command_line import parse_config
from hebbes.recording.metrics import read_metrics
from hebbes.strategies.openai_es import OpenAIES
from hebbes.training.prepare import prepare
from hebbes.training.run import execute
from tests.training.scripted_runs import make_scripted_config, read_outcome, resume, train


def load_metrics(folder):
    return read_metrics(folder / "metrics.csv")


def load_strategy(folder):
    arrays = load_newest_checkpoint(folder / "checkpoint")[0].state.arrays
    return {name: array.tobytes() for name, array in arrays.items()}


def train_cartpole(tmp_path, *flags):
    common = ["--environment", "CartPole-v1", "--generations", "5", "--test_episodes", "0", "--threads", "1"]
    small = ["--popsize", "16", "--eval_episodes", "1", "--folder", str(tmp_path)]
    strategy = flags[flags.index("--strategy") + 1] if "--strategy" in flags else "openai_es"
    given = [*common, *(small if strategy == "openai_es" else small[2:]), *flags]
    (run,) = prepare(parse_config("static", given, ""))
    execute(run)
    return run.folder


@pytest.mark.slow
@pytest.mark.parametrize("threads", [1, 3])
def test_a_population_that_has_grown_is_the_population_of_that_size(threads, tmp_path):
    """An episode has 5 env steps: 8 members take 40, 12 take 60, and the mean policy takes 5 more."""
    common = {"generations": 4, "chunk_size": 2, "episode_seeds": "independent"}
    larger = train(make_scripted_config(tmp_path, run_name="larger", population_size=12, **common))
    changes = {"population_size": 4, "num_interactions": 41, "population_size_max": 12, "threads": threads}
    grown = train(make_scripted_config(tmp_path, run_name="grown", **changes, **common))
    assert read_outcome(grown)["counts"] == read_outcome(larger)["counts"]
    assert load_strategy(grown) == load_strategy(larger)
    assert load_metrics(grown)["num_members"].tolist() == [12] * 4
    assert load_metrics(grown)["env_steps"].tolist() == [65, 130, 195, 260]


@pytest.mark.slow
def test_a_run_whose_population_grows_is_resumed_exactly(tmp_path):
    changes = {"population_size": 4, "num_interactions": 41, "population_size_max": 12}
    whole = train(make_scripted_config(tmp_path, run_name="whole", generations=4, **changes))
    cut_short = train(make_scripted_config(tmp_path, run_name="cut_short", generations=2, **changes))
    assert read_outcome(resume(cut_short, generations=4)) == read_outcome(whole)


def test_a_run_that_nothing_ends_says_so(tmp_path, capsys):
    config = make_scripted_config(tmp_path, generations=None)
    (run,) = prepare(config)
    execute(run, lambda row: True)
    assert "nothing ends this run but you" in capsys.readouterr().out
    train(make_scripted_config(tmp_path, generations=None, stop_at_return=-100.0, run_name="goal"))
    assert "nothing ends this run" not in capsys.readouterr().out


def test_the_reward_shift_counts_once_for_each_env_step_of_an_episode(tmp_path, monkeypatch):
    told, tell = [], OpenAIES.tell
    monkeypatch.setattr(OpenAIES, "tell", lambda *given: told.append(given[-1].fitness) or tell(*given))
    script = {"rewards": [0.25], "truncate_at": 5, "action_weight": 0.0}
    changes = {"env_kwargs": script, "episodes_per_member": 3, "reward_shift": -1.0, "generations": 1}
    train(make_scripted_config(tmp_path, **changes))
    (fitness,) = told
    assert fitness.tolist() == pytest.approx([5 * (0.25 - 1)] * 9)


def test_a_population_grows_until_it_has_its_env_steps_or_its_members(tmp_path):
    def count_members(**changes):
        config = make_scripted_config(tmp_path, generations=1, population_size=4, **changes)
        return load_metrics(train(config))["num_members"].tolist()

    assert count_members(run_name="enough", num_interactions=20) == [4]
    assert count_members(run_name="twice", num_interactions=50) == [12]
    assert count_members(run_name="at_most", num_interactions=10**6, population_size_max=10) == [8]
    assert count_members(run_name="ten_times", num_interactions=10**6) == [40]


def test_episodes_are_capped_by_the_mean_length_of_those_before(tmp_path):
    metrics = load_metrics(train_cartpole(tmp_path, "--run_name", "free"))
    free = metrics["episode_length_mean"]
    assert np.diff(metrics["env_steps"], prepend=0) / 17 == pytest.approx(free)  # 16 members and the mean policy
    assert (free[1:] > np.ceil(1.01 * free[:-1])).any()
    train_cartpole(tmp_path / "huge", "--episode_cap_factor", "1e308")
    capped = load_metrics(train_cartpole(tmp_path, "--episode_cap_factor", "1.01"))["episode_length_mean"]
    assert capped[0] == free[0]
    assert all(after <= ceil(1.01 * before) for before, after in itertools.pairwise(capped))


@pytest.mark.parametrize(
    ("flags", "lengths"), [([], [20, 21, 22, 23]), (["--max_episode_steps", "21"], [20, 21, 21, 21])]
)
def test_the_cap_starts_at_its_minimum_and_never_falls_below(flags, lengths, tmp_path):
    folder = train_cartpole(tmp_path, "--episode_cap_factor", "1.01", "--episode_cap_min", "20", *flags)
    first, *rest = load_metrics(folder)["episode_length_mean"]
    assert ceil(1.01 * first) < 20
    assert rest == lengths


def test_the_cap_goes_on_after_a_resume(tmp_path):
    flags = ["--episode_cap_factor", "1.01", "--episode_cap_min", "5"]
    whole = load_metrics(train_cartpole(tmp_path, *flags, "--run_name", "whole"))["episode_length_mean"]
    resumed = load_metrics(resume(train_cartpole(tmp_path, *flags, "--generations", "2"), generations=len(whole)))
    assert resumed["episode_length_mean"].tolist() == whole.tolist()


def test_episodes_that_fail_do_not_lower_the_cap(tmp_path):
    script = {"truncate_at": 20, "raise_at": 1, "only_above": 0.0}
    folder = train(make_scripted_config(tmp_path, env_kwargs=script, episode_cap_factor=2.0, population_size=8))
    metrics = load_metrics(folder)
    assert metrics["failed_members"][0] > 0
    assert metrics["episode_length_mean"].tolist() == [20] * len(metrics["generation"])


def test_a_shift_of_the_reward_changes_the_fitness_and_no_return(tmp_path):
    """Without the reward of 1 per env step, all members tie on CartPole, and the linear policy stays at zero."""
    for name, flags, moves in (("plain", [], True), ("shifted", ["--reward_shift", "-1"], False)):
        folder = train_cartpole(tmp_path, "--weight_penalty", "0", "--run_name", name, *flags)
        assert load_metrics(folder)["return_mean"].min() > 5
        assert read_policy_file(folder / "latest.dat").weights.any() == moves


def test_a_run_stops_at_the_return_asked_for_and_says_so(tmp_path, capsys):
    folder = train(make_scripted_config(tmp_path, eval_every=3, stop_at_return=-1e9))
    assert load_metrics(folder)["generation"].tolist() == [1, 2, 3]
    score = read_policy_file(folder / "best.dat", ["tests"]).provenance["score"]
    reason = f"the best score, {score:.6g}, has reached stop_at_return -1e+09"
    assert f"training ended: {reason}" in capsys.readouterr().out
    resume(folder)
    printed = capsys.readouterr().out
    assert f"nothing to do: {reason}" in printed and "training ended" not in printed


@pytest.mark.parametrize(
    ("budget", "reason"),
    [
        ({"generations": 2}, "generation 2 of 2 is done"),
        ({"generations": None, "max_env_steps": 500}, "540 of 500 env steps are done"),
        ({"max_env_steps": 50}, "90 of 50 env steps are done"),
    ],
)
def test_a_run_says_which_budget_ended_it(budget, reason, tmp_path, capsys):
    train(make_scripted_config(tmp_path, **budget))
    assert f"training ended: {reason}" in capsys.readouterr().out


def test_metrics_go_to_tensorboard_too(tmp_path):
    folder = train(make_scripted_config(tmp_path, generations=2, tensorboard=True))
    (events,) = folder.glob("events.*")
    assert all(name.encode() in events.read_bytes() for name in load_metrics(folder) if name != "generation")


def test_shares_of_time_add_up_and_saturated_actions_are_counted(tmp_path):
    flags = [
        "--environment",
        "Pendulum-v1",
        "--action_bounds",
        "tanh",
        "--generations",
        "2",
        "--max_episode_steps",
        "5",
    ]
    rows = load_metrics(train_cartpole(tmp_path, *flags))
    shares = [rows[f"{part}_seconds_share"] for part in ("policy", "simulator", "update")]
    assert np.sum(shares, axis=0) == pytest.approx([1, 1]) and np.min(shares) > 0
    assert rows["saturated_actions"].tolist() == [0, 0]  # tanh stays within 1 of bounds of 2
    rows = load_metrics(
        train_cartpole(tmp_path, *flags, "--action_bounds", "rescale", "--sigma", "1e6", "--run_name", "wild")
    )
    assert rows["saturated_actions"].min() > 0.9


def test_rank_and_ties_are_of_the_shifted_returns(tmp_path, capsys):
    shifted = load_metrics(
        train_cartpole(tmp_path, "--reward_shift", "-1", "--weight_penalty", "0")
    )  # each env step rewards 1
    assert shifted["return_std"].min() > 0
    assert shifted["mean_policy_rank"].tolist() == [1] * 5 and shifted["tied_share"].tolist() == [1] * 5
    assert capsys.readouterr().out.count("all members have the same fitness, 0: ") == 1


def test_an_evaluation_ends_where_the_environments_own_limit_is_taken_away(tmp_path):
    endless = ["--env_kwargs", "{max_episode_steps: -1}", "--max_episode_steps", "20", "--backend", "gymnasium"]
    small = "--environment MountainCar-v0 --policy linear --generations 1 --popsize 4 --eval_episodes 1 --threads 1"
    given = [*small.split(), *endless, "--test_episodes", "1", "--folder", str(tmp_path)]
    rows = load_metrics(train(parse_config("static", given, "")))
    assert rows["eval_return"].tolist() == [-20]


def test_a_lone_candidate_ties_with_nobody(tmp_path, capsys):
    folder = train_cartpole(tmp_path, "--strategy", "one_plus_one")
    assert load_metrics(folder)["num_members"].tolist() == [1] * 5
    assert "same fitness" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (
            ["--population_size_max", "14", "--num_interactions", "9"],
            "population_size_max must be >= twice population_size, 32, got 14",
        ),
        (
            ["--sigma", "1e31", "--num_interactions", "9"],
            "the search diverges, with weights up to 0 and sigma up to 1e\\+31",
        ),
        (
            ["--strategy", "snes", "--population_size_max", "9", "--num_interactions", "9"],
            "population_size_max must be >= twice population_size, 20, got 9",
        ),
        (["--num_interactions", "9", "--strategy", "ga"], "can grow, ars, cem, openai_es, pgpe, snes; got ga"),
    ],
)
def test_what_makes_no_sense_is_refused(tmp_path, flags, message):
    with pytest.raises(ValueError, match=message):
        train_cartpole(tmp_path, *flags)


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (
            ["--virtual_batch", "5"],
            "virtual_batch is not an option of policy linear; it belongs to cnn, conv_lstm",
        ),
        (["--sampler", "low_rank", "--rank", "3"], "rank must be <= 2, the rank of the largest matrix, got 3"),
        (["--policy", "hebbian"], "policy 'hebbian' is not for this program; train it with python train_hebbian.py"),
    ],
)
def test_what_the_policy_has_no_use_for_is_refused_before_anything_is_written(tmp_path, flags, message):
    with pytest.raises(ValueError, match=message):
        train_cartpole(tmp_path, *flags)
    assert list(tmp_path.iterdir()) == []
