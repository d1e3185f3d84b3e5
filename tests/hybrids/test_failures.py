"""What a hybrid says when episodes fail, and when all of them do."""

import gymnasium
import numpy as np
import pytest

import hebbes
from hebbes.contracts.engine import EPISODE_TIMEOUT, NONFINITE_OUTPUT
from hebbes.contracts.trainer import AllFailedError
from hebbes.hybrids.core.replay import Replay
from hebbes.options.command_line import parse_config
from hebbes.training.advice import DivergedError, TrainingError, explain_failure

SCRIPTED = {
    **{"environment": "tests.scripted:Scripted-v0", "hidden_sizes": [8], "start_steps": 8, "batch_size": 4, "seed": 1},
    **{"replay_size": 1000, "eval_every": 1000, "test_episodes": 0, "threads": 1, "max_env_steps": 200},
}
CEM_RL = {"algorithm": "cem_rl", "population_size": 8, "rl_population": 2, "initial_variance": 1.0}
ADVICE = "what helps      mend the environment, then {resume}"


class FailsAtTimes(gymnasium.Wrapper):
    """Every third episode has a reward that is not finite."""

    number = 0

    def reset(self, **options):
        self.number += 1
        return super().reset(**options)

    def step(self, action):
        observation, reward, *rest = super().step(action)
        return observation, reward if self.number % 3 else np.nan, *rest


def train(folder, script, **changes):
    return hebbes.train({**SCRIPTED, "env_kwargs": script, "folder": str(folder), **changes}, trainer="hybrid")


def find_lines(capsys, text):
    return [line for line in capsys.readouterr().out.splitlines() if text in line]


@pytest.mark.parametrize("changes", [{}, {"episode_timeout": 50}])
def test_a_generation_in_which_all_fail_ends_the_run(changes, tmp_path):
    with pytest.raises(TrainingError, match=r"^generation 1: every member failed: RuntimeError: .* in 8 ep") as stopped:
        train(tmp_path, {"raise_at": 2, "truncate_at": 4}, **CEM_RL, **changes)
    assert (type(stopped.value), stopped.value.advice) == (TrainingError, ADVICE)


def test_outputs_that_are_not_finite_may_be_the_fault_of_step_sizes():
    config = parse_config("hybrid", ["--environment", "Hopper-v5", "--algorithm", "cem_rl"], "test")
    found = explain_failure("generation 7", AllFailedError("every member", {NONFINITE_OUTPUT: 4}), config)
    assert (type(found), str(found)) == (
        DivergedError,
        "generation 7: every member failed: non-finite output in 4 episodes",
    )
    steps = "a new run with other step sizes (--learning_rate, --initial_variance)"
    assert found.advice == ADVICE.replace("mend", f"{steps}; or mend")


def test_episodes_that_took_too_long_may_be_quicker_after_a_resume():
    config = parse_config("hybrid", ["--environment", "Hopper-v5", "--algorithm", "cem_rl"], "test")
    found = explain_failure("generation 7", AllFailedError("every member", {EPISODE_TIMEOUT: 4}), config)
    assert (type(found), found.advice) == (TrainingError, "to go on        {resume}")


def test_members_that_fail_in_one_generation_after_the_other_cost_one_line(tmp_path, capsys):
    run = train(tmp_path, {"truncate_at": 4, "raise_at": 2, "only_above": 0.0}, **CEM_RL)
    failed, lines = run.metrics["failed_members"].astype(int), find_lines(capsys, " members failed: ")
    assert failed[0] and failed[1] and not failed[2:].any()  # one problem that lasts for two generations
    (line,) = lines
    text = f"generation 1: {failed[0]} of 8 members failed: RuntimeError: scripted failure at env step 2"
    assert line == f"{text} in {failed[0]} episodes"


def test_episodes_that_fail_again_and_again_cost_one_line(tmp_path, capsys):
    run = train(tmp_path, {"truncate_at": 4, "raise_at": 3}, max_env_steps=30)
    assert len(run.metrics["return"]) == 10
    (line,) = find_lines(capsys, "the episode failed: ")
    assert line == "episode 1: the episode failed: RuntimeError: scripted failure at env step 3 in 1 episode"


def test_a_quiet_run_tells_of_failures_alone_on_standard_error(tmp_path, capsys):
    train(tmp_path, {"truncate_at": 4, "raise_at": 3}, max_env_steps=30, quiet=True)
    said = capsys.readouterr()
    line = "episode 1: the episode failed: RuntimeError: scripted failure at env step 3 in 1 episode"
    assert said.out == "" and line in said.err.splitlines()


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_a_reward_beyond_float32_fails_its_episode_and_stays_out_of_the_replay(tmp_path, monkeypatch):
    rows, add = [], Replay.add_rows
    monkeypatch.setattr(Replay, "add_rows", lambda replay, each: (rows.append(each.copy()), add(replay, each)))
    run = train(tmp_path, {"truncate_at": 4, "rewards": [1, 1, 1e39, 1]}, max_env_steps=30)
    assert np.isnan(run.metrics["return"]).all() and run.metrics["replay_size"].tolist() == list(range(2, 22, 2))
    assert np.isfinite(np.concatenate(rows)).all()


def test_an_asynchronous_hybrid_tells_of_each_problem_twice_at_most(tmp_path, capsys):
    options = {"algorithm": "aes_rl", "mean_scale": 1.0, "actor_workers": 2, "max_env_steps": 120}
    run = train(tmp_path, {"raise_at": 2, "truncate_at": 4, "only_above": 0.0}, **options)
    lines = find_lines(capsys, " failed: ")
    assert np.isnan(run.metrics["return"]).sum() > 4
    for who in ("an individual", "the mean policy", "the evaluation"):
        assert sum(f": {who} failed: " in line for line in lines) <= 2
    assert any(": an individual failed: " in line for line in lines)


def test_one_env_step_that_fails_among_episodes_of_one_is_not_taken_for_all(tmp_path, capsys):
    """The mean policy's five episodes have one env step each, and only some of them fail."""
    options = {"algorithm": "aes_rl", "mean_scale": 1.0, "actor_workers": 1, "start_steps": 0, "max_env_steps": 9}
    options |= {"gymnasium_wrappers": [f"{__name__}:FailsAtTimes"], "import": [__name__]}
    run = train(tmp_path, {"truncate_at": 1}, **options)
    assert len(run.metrics["return"]) == 9
    assert np.isfinite(run.metrics["mean_policy_return"]).all()
    assert "the mean policy failed: " in capsys.readouterr().out


@pytest.mark.parametrize("algorithm", [{}, {"algorithm": "aes_rl", "mean_scale": 1.0, "actor_workers": 1}])
def test_a_first_env_step_that_fails_in_some_episodes_costs_these(algorithm, tmp_path):
    """Every third episode, and so the first ones of a warm-up too. The others collect the env steps."""
    options = {
        "gymnasium_wrappers": [f"{__name__}:FailsAtTimes"],
        "import": [__name__],
        "start_steps": 50,
        **algorithm,
    }
    run = train(tmp_path, {"truncate_at": 4}, max_env_steps=60, **options)
    failed = np.isnan(run.metrics["return"])
    assert 3 < failed.sum() < len(failed) / 2 and run.metrics["env_steps"][-1] >= 60


def test_an_evaluation_that_fails_says_why(tmp_path, capsys):
    """Episodes of training end before the env step that fails, those of evaluations do not."""
    options = {"early_stop_negative_streak": 2, "eval_every": 20, "test_episodes": 2, "start_steps": 100}
    run = train(tmp_path, {"rewards": [-1.0], "raise_at": 4, "truncate_at": 9}, **{**CEM_RL, **options})
    said = capsys.readouterr().out.splitlines()
    assert np.isnan(run.returns).all()
    assert [line for line in said if "evaluation failed" in line] == [
        "generation 1: the evaluation failed: RuntimeError: scripted failure at env step 4 in 10 episodes"
    ]
    assert "the test failed: RuntimeError: scripted failure at env step 4 in 2 episodes" in said
