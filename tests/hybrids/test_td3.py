"""TD3 as a program: what it does in which env step, its files, its resume, and what it refuses."""

import sys

import numpy as np
import pytest
import torch
from gymnasium.spaces import Box, Discrete

import hebbes
from hebbes.contracts.errors import ForeignExitError
from hebbes.environments import trial
from hebbes.execution.provenance import find_conditions
from hebbes.files.checkpoint import load_newest_checkpoint
from hebbes.hybrids import td3
from hebbes.hybrids.core.learner import Learner
from hebbes.options.command_line import resolve_config
from hebbes.recording.metrics import METRICS, read_metrics
from hebbes.training.advice import TrainingError
from hebbes.wrappers.base import BatchWrapper

TINY = {
    **{"environment": "Pendulum-v1", "hidden_sizes": [16], "start_steps": 250, "batch_size": 8, "replay_size": 700},
    **{"eval_every": 400, "eval_episodes": 1, "test_episodes": 0, "checkpoint_every": 2, "threads": 1, "seed": 3},
}


def train(folder, **changes):
    return hebbes.train({**TINY, "folder": str(folder), **changes}, trainer="hybrid", quiet=True)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A run of five episodes of 200 env steps."""
    return train(tmp_path_factory.mktemp("whole"), max_env_steps=1000)


def test_nothing_is_trained_before_start_steps_and_one_step_after_each_env_step_then(whole):
    metrics = whole.metrics
    assert metrics["env_steps"].tolist() == [200, 400, 600, 800, 1000]
    assert metrics["critic_steps"].tolist() == [0, 150, 200, 200, 200]
    assert metrics["actor_steps"].tolist() == [0, 75, 100, 100, 100]  # with every second step of the critics
    assert metrics["replay_size"].tolist() == [200, 400, 600, 700, 700]
    assert np.isnan(metrics["critic_loss"]).tolist() == np.isnan(metrics["q_mean"]).tolist() == [True] + 4 * [False]
    assert np.isfinite(metrics["eval_return"]).tolist() == [False, True, False, True, True]
    assert set(metrics) <= set(METRICS)


def test_the_actor_is_an_ordinary_policy(whole):
    policy = hebbes.load_policy(whole.best)
    assert policy.num_params == 3 * 16 + 16 + 16 + 1
    assert np.isfinite(hebbes.evaluate(whole.best, episodes=2, threads=1).mean)


@pytest.mark.slow
@pytest.mark.parametrize("stop", [400, 800])
def test_a_resumed_run_has_the_same_bits(stop, whole, tmp_path):
    first = train(tmp_path, max_env_steps=stop)
    resumed = hebbes.train({"run.resume": str(first.folder), "max_env_steps": 1000}, trainer="hybrid", quiet=True)
    timed = {"env_steps_per_second", "seconds"}
    found, expected = read_metrics(resumed.folder / "metrics.csv"), whole.metrics
    for name in set(expected) - timed - {"eval_return", "best_score"}:  # the shorter run was evaluated at its end
        np.testing.assert_array_equal(found[name], expected[name], name)
    saved, whole_saved = (load_newest_checkpoint(run.folder / "checkpoint")[0] for run in (resumed, whole))
    assert saved.state.values == whole_saved.state.values
    for name, array in whole_saved.state.arrays.items():
        np.testing.assert_array_equal(saved.state.arrays[name], array, name)
    for name, segment in whole_saved.state.segments.items():
        np.testing.assert_array_equal(saved.state.segments[name].arrays["rows"], segment.arrays["rows"], name)


def test_another_seed_gives_another_run(whole, tmp_path):
    assert train(tmp_path, max_env_steps=400, seed=4).metrics["return"][0] != whole.metrics["return"][0]


def test_a_wrapper_that_raises_ends_the_run_with_a_line(tmp_path):
    with pytest.raises(RuntimeError, match=r"wrappers 'tests.hybrids.test_td3:Raising' cannot be used: KeyError: 'no'"):
        train(tmp_path, wrappers=["tests.hybrids.test_td3:Raising"], max_env_steps=400)


def test_an_exit_in_a_simulator_is_an_error_and_none_of_ours(tmp_path):
    with pytest.raises(ForeignExitError, match=rf"^{__file__}, line \d+, called sys.exit\(0\)$"):
        train(tmp_path, wrappers=["tests.hybrids.test_td3:Leaving"], max_env_steps=400)


@pytest.mark.parametrize("algorithm", ["td3", "acem_rl"])
def test_a_wrapper_that_cannot_be_closed_does_no_harm(algorithm, tmp_path):
    wrappers = ["tests.hybrids.test_td3:Jammed"]
    assert train(tmp_path, algorithm=algorithm, wrappers=wrappers, max_env_steps=400).is_complete


@pytest.mark.parametrize("wrapper", ["TwoNumbers", "FiveChoices"])
def test_a_wrapper_with_other_actions_than_the_environments_is_refused(wrapper, tmp_path):
    with pytest.raises(ValueError, match=r"^gradients need the environment's own actions, .*, but a wrapper takes "):
        train(tmp_path, wrappers=[f"tests.hybrids.test_td3:{wrapper}"], max_env_steps=400)


class TwoNumbers(BatchWrapper):
    """Takes two numbers, and passes on their sum."""

    def __post_init__(self):
        super().__post_init__()
        self.action_space = Box(-1, 1, (2,), np.float32)

    def step(self, actions, active):
        return self.env.step(actions.sum(axis=1, keepdims=True), active)


class FiveChoices(BatchWrapper):
    """Takes the number of a torque."""

    def __post_init__(self):
        super().__post_init__()
        self.action_space = Discrete(5)

    def step(self, actions, active):
        return self.env.step(np.linspace(-2, 2, 5, dtype=np.float32)[actions, np.newaxis], active)


class Leaving(BatchWrapper):
    """Ends the program in the thirtieth env step."""

    def step(self, actions, active):
        self.steps = getattr(self, "steps", 0) + 1
        if self.steps == 30:
            sys.exit(0)
        return self.env.step(actions, active)


class Jammed(BatchWrapper):
    """Cannot be closed."""

    def close(self):
        super().close()
        raise KeyError("jammed")


class Raising(BatchWrapper):
    """Raises in the thirtieth env step. Its option has the name of one of the policy's."""

    bias: float = 0.5

    def step(self, actions, active):
        self.steps = getattr(self, "steps", 0) + 1
        if self.steps == 30:
            raise KeyError("no")
        return self.env.step(actions, active)


def test_the_first_actions_are_uniform_and_later_ones_are_the_actors_with_noise(monkeypatch, tmp_path):
    taken = []

    class Spy(td3._Exploration):
        def choose_actions(self, observations, actions):
            chosen = super().choose_actions(observations, actions)
            taken.append((float(actions[0, 0]), float(chosen[0, 0])))
            return chosen

    monkeypatch.setattr(td3, "_Exploration", Spy)
    train(tmp_path, max_env_steps=600, exploration_noise=0.05)
    first, later = np.array(taken[:250]), np.array(taken[250:])
    assert abs(first[:, 1].mean()) < 0.15 and first[:, 1].std() == pytest.approx(3**-0.5, rel=0.1)
    inner = np.abs(later).max(axis=1) < 0.8  # noise is clipped at the bounds
    assert np.diff(later[inner]).std() == pytest.approx(0.05, rel=0.2)
    assert np.abs(np.array(taken)[:, 1]).max() <= 1


def test_actions_enter_the_replay_in_the_units_of_the_environment(monkeypatch, tmp_path):
    added, add = [], Learner.add

    def keep(self, transitions):
        add(self, transitions)
        added.append((transitions.actions[0], self.replay._rows[self.replay.count % 700 - 1, 3:4].copy()))

    monkeypatch.setattr(Learner, "add", keep)
    train(tmp_path, max_env_steps=400)
    unit, stored = map(np.stack, zip(*added, strict=True))
    np.testing.assert_allclose(stored, 2 * unit, rtol=1e-6)  # Pendulum's torque is in [-2, 2]


def test_estimates_that_are_not_finite_end_the_run_with_a_line(monkeypatch, tmp_path):
    draw = Learner.train_critics

    def poison(self, target, rng):
        draw(self, target, rng)
        self.critics.trained.rows[0, 0] = np.nan

    monkeypatch.setattr(Learner, "train_critics", poison)
    with pytest.raises(RuntimeError, match=r"episode 2: the critics' estimates are no longer finite"):
        train(tmp_path, max_env_steps=1000)
    (folder,) = (tmp_path / "Pendulum-v1").iterdir()
    assert load_newest_checkpoint(folder / "checkpoint")[0].progress.units == 1


SCRIPTED = {"environment": "tests.scripted:Scripted-v0", "start_steps": 10, "eval_every": 10}


def test_a_simulator_that_fails_at_once_ends_the_run_with_a_line(tmp_path, monkeypatch):
    monkeypatch.setattr(trial, "start_and_check", lambda env, spec: None)  # it would refuse this one
    script = {"truncate_at": 4, "raise_at": 1}
    text = r"^episode 10: 10 episodes in a row, in their first env step, failed: .* in 1 episode$"
    with pytest.raises(TrainingError, match=text):
        train(tmp_path, **SCRIPTED, env_kwargs=script, max_env_steps=40)


def test_a_simulator_that_fails_later_costs_only_its_episode(tmp_path):
    run = train(tmp_path, **SCRIPTED, env_kwargs={"truncate_at": 4, "raise_at": 3}, max_env_steps=12)
    assert np.isnan(run.metrics["return"]).all() and run.metrics["episode_length"].tolist() == [3, 3, 3, 3]
    assert run.metrics["replay_size"].tolist() == [2, 4, 6, 8]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"environment": "CartPole-v1"}, "--algorithm td3 needs actions of real numbers with bounds, but CartPole-v1"),
        ({"environment": "CarRacing-v3"}, "--algorithm td3 needs observations that are vectors, but CarRacing-v3"),
        ({"action_bounds": "clip"}, "action_bounds must be rescale with --algorithm td3, got clip"),
        ({"bias": False}, "bias must be True with --algorithm td3, got False"),
        ({"activation": "selu"}, "activation must be tanh or relu with --algorithm td3, got selu"),
        ({"policy": "cnn"}, "policy must be one of mlp, got 'cnn'"),
        (
            {"algorithm": "sac"},
            "unknown algorithm 'sac', known: acem_rl, aes_rl, cem_rl, ",
        ),
        ({"replay_size": 10**14}, r"replay_size 100000000000000 would take about .* PB"),
        ({"batch_size": 0}, "batch_size must be >= 1, got 0"),
        (
            {"episode_timeout": 9},
            "episode_timeout does not reach the training episodes of --algorithm td3; leave it out, or train with "
            "--algorithm cem_rl or p_cem_rl",
        ),
        (
            {"episode_timeout": 9, "algorithm": "aes_rl", "mean_scale": 1},
            "episode_timeout does not reach the training episodes of --algorithm aes_rl",
        ),
        ({"batch_size": 10**12}, r"^batch_size 10{12} would take about .* fit$"),
        ({"critic_hidden_sizes": [10**6, 10**6]}, r"smaller networks \(hidden_sizes, critic_hidden_sizes\) need less$"),
        ({"algorithm": "cem_rl", "population_size": 10**18}, r"^population_size 10{18} would take about"),
        ({"algorithm": "acem_rl", "actor_workers": 257}, r"^actor_workers must be in \[1, 256\], got 257"),
        ({"algorithm": "acem_rl", "batch_size": 10**12}, r"^batch_size 10{12} would take about"),
        ({"gradient_threads": 10**5}, r"gradient_threads must be in \[1, 1024\], got 100000"),
        (
            {"algorithm": "acem_rl", "engine": "ray", "device": "cuda"},
            "device must be cpu with --engine ray, whose nodes are not asked for a GPU, got cuda",
        ),
        (
            {"algorithm": "acem_rl", "completion_log": "log", "device": "cuda"},
            "device must be cpu with completion_log, because a GPU does not repeat the bits, got cuda",
        ),
        ({"max_env_steps": 250}, r"start_steps must be less than max_env_steps 250, .*, got 250"),
        (
            {"gymnasium_wrappers": ["RescaleAction: {min_action: -3.0e+38, max_action: 3.0e+38}"]},
            r"--algorithm td3 needs actions of real numbers with bounds, but Pendulum-v1 has Box\(-3e\+38, 3e\+38",
        ),
    ],
)
def test_bad_input_is_refused_in_one_line_before_anything_starts(changes, message, tmp_path):
    with pytest.raises(ValueError, match=message) as refusal:
        train(tmp_path, **changes)
    assert "\n" not in str(refusal.value)
    assert not list(tmp_path.iterdir())


def test_a_resume_by_another_program_is_told_which_one_it_needs(tmp_path):
    tiny = {"environment": "Pendulum-v1", "generations": 1, "population_size": 4, "threads": 1, "test_episodes": 0}
    evolved = hebbes.train({**tiny, "folder": str(tmp_path / "es")}, quiet=True)
    made = {"hybrid": train(tmp_path / "td3", max_env_steps=400), "static": evolved}
    for maker, run in made.items():
        for other in {"static", "hybrid", "hebbian"} - {maker}:
            if {maker, other} == {"static", "hebbian"}:  # both evolve by strategies, and the policy tells them apart
                continue
            with pytest.raises(ValueError, match=rf"was made by python train_{maker}.py; resume it with that"):
                hebbes.train({"resume": str(run.folder)}, trainer=other, quiet=True)


def test_lines_of_progress_come_every_so_many_env_steps(tmp_path, capsys):
    options = {**TINY, "folder": str(tmp_path), "max_env_steps": 1000, "start_steps": 900}
    hebbes.train({**options, "print_every": 400}, trainer="hybrid")
    rows = [line.split() for line in capsys.readouterr().out.splitlines() if line.split()[0].isdigit()]
    assert [row[:2] for row in rows] == [["1", "200"], ["2", "400"], ["4", "800"], ["5", "1,000"]]
    assert [row[3] == "-" for row in rows] == [True, False, False, False]  # the evaluation


def test_by_default_lines_come_as_often_as_evaluations():
    config = resolve_config("hybrid", [("environment", ["Pendulum-v1"])])
    assert config.run.print_every == config.training.eval_every == 5000


def test_another_version_of_pytorch_is_a_condition_of_the_bits():
    assert find_conditions()["torch"] == torch.__version__


def test_without_torch_a_line_says_how_to_install_it(tmp_path, monkeypatch):
    monkeypatch.setattr("hebbes.training.hybrid.find_spec", lambda name: None)
    with pytest.raises(ValueError, match=r"--algorithm td3 needs the package torch, .*: pip install torch"):
        train(tmp_path)
    assert not list(tmp_path.iterdir())
