"""`hebbes.evaluate`: the numbers of the program, and errors of one line that leave the caller's process alone."""

import json
import sys
from dataclasses import fields, replace

import numpy as np
import pytest
from gymnasium.envs.classic_control import CartPoleEnv

import hebbes
from hebbes.contracts.engine import EngineError, StartError
from hebbes.contracts.randomness import Purpose
from hebbes.environments.environment_spec import EnvironmentSpec
from hebbes.evaluation import evaluate as module
from hebbes.evaluation import play as play_module
from hebbes.evaluation.entries import load_in_environment
from hebbes.evaluation.evaluate import Evaluation
from hebbes.evaluation.interventions import INTERVENTIONS
from hebbes.evaluation.play import make_evaluation_spec, play
from hebbes.files.policy_file import SavedPolicy, read_policy_file, save_policy
from hebbes.policies.hebbian import Hebbian
from hebbes.policies.linear import Linear
from tests.evaluation.files_to_play import CARTPOLE, EVERY_KIND, save_balancing_policy
from tests.python_process import run_python

SCRIPTED = EnvironmentSpec("Scripted-v0", "gymnasium", imports=("tests.scripted",))


def save_scripted(path, **env_kwargs):
    spec = replace(SCRIPTED, env_kwargs=env_kwargs)
    save_policy(path, SavedPolicy(Linear((2,), 2), "linear", np.zeros(4, np.float32), {}, "identity", spec, {}))
    return path


@pytest.mark.parametrize(
    ("name", "kept"),
    [
        ("Pong-v5", {"frameskip": 2, "repeat_action_probability": 0.5, "mode": 1}),
        ("PongDeterministic-v4", {"mode": 1}),
        ("PongNoFrameskip-v0", {"frameskip": 1, "repeat_action_probability": 0.25, "mode": 1}),
    ],
)
def test_another_name_of_an_atari_game_sets_all_that_it_says(name, kept, tmp_path):
    env_kwargs = {"frameskip": 2, "repeat_action_probability": 0.5, "mode": 1}
    save_balancing_policy(tmp_path / "a.dat", environment=EnvironmentSpec("Pong-v5", "gymnasium", env_kwargs))
    saved, _ = load_in_environment(tmp_path / "a.dat", name, ())
    assert (saved.environment.environment, saved.environment.env_kwargs) == ("Pong-v5", kept)


@pytest.mark.slow
def test_the_numbers_are_those_of_the_program(tmp_path):
    save_policy(tmp_path / "a.dat", EVERY_KIND["hebbian"])
    options = {"episodes": 9, "seed": 3, "threads": 2, "max_episode_steps": 100}
    flags = [str(part) for name, value in options.items() for part in (f"--{name}", value)]
    done = run_python("evaluate_static.py", "--path_weights", tmp_path / "a.dat", "--json", *flags)
    (printed,) = json.loads(done.stdout)["files"]
    found = hebbes.evaluate(tmp_path / "a.dat", **options)
    assert found.returns.tolist() == printed["returns"][0]
    assert (found.mean, list(found.interval)) == (printed["mean"], printed["mean_ci"])
    assert found.summary.iqm.value == printed["iqm"]
    assert np.array_equal(found.env_steps, found.returns)  # of CartPole, which gives 1 per env step


def test_an_evaluation_is_one_line(tmp_path):
    found = Evaluation(np.array([1.0, 3.0]), np.array([4, 5]), {})
    assert str(found).startswith("mean 2.00 [1.00, 3.00], ") and str(found).endswith(" over 2 episodes")
    failed = hebbes.evaluate(save_scripted(tmp_path / "a.dat", raise_at=2), **FEW, imports=["tests.scripted"])
    assert str(failed) == "2 of 2 episodes failed: RuntimeError: scripted failure at env step 2 (2)"
    assert np.isnan(failed.mean) and np.isnan(failed.returns).all()
    assert failed.env_steps.tolist() == [2, 2]


FEW = {"episodes": 2, "threads": 1}


def test_the_seeds_of_its_episodes_are_those_of_no_evaluation_in_training(tmp_path, monkeypatch):
    purposes, play_on = [], play_module.play_on

    def spy(*given, **options):
        purposes.append(options["purpose"])
        return play_on(*given, **options)

    monkeypatch.setattr(play_module, "play_on", spy)
    hebbes.evaluate(save_balancing_policy(tmp_path / "a.dat"), episodes=1, threads=1)
    assert purposes == [Purpose.TEST]


def test_another_environment_can_be_named_as_in_the_program(tmp_path):
    path = save_balancing_policy(tmp_path / "a.dat")
    with pytest.warns(UserWarning, match="CartPole means CartPole-v1"):
        found = hebbes.evaluate(path, environment="CartPole", **FEW)
    assert found.returns.tolist() == [500, 500]
    with pytest.raises(ValueError, match=r"^.*a.dat: the policy takes observations of shape \(4,\).*\(6,\).*$"):
        hebbes.evaluate(path, environment="Acrobot-v1", **FEW)
    with pytest.warns(UserWarning, match="has no limit on the env steps of an episode"):
        spec = replace(CARTPOLE, env_kwargs={"max_episode_steps": -1})
        hebbes.evaluate(
            save_balancing_policy(tmp_path / "b.dat", environment=spec, weights=np.ones(8, np.float32)), **FEW
        )


class Stumbling(Hebbian):
    """Cannot act."""

    def act(self, weights, observations, previous_rewards, state, buffers):
        raise RuntimeError("scripted")


def test_a_users_plastic_policy_is_named_with_an_intervention_too(tmp_path):
    name = "tests.evaluation.test_evaluate:Stumbling"
    saved = EVERY_KIND["hebbian"]
    stumbling = Stumbling(**{field.name: getattr(saved.policy, field.name) for field in fields(saved.policy)})
    save_policy(tmp_path / "a.dat", replace(saved, policy=stumbling, policy_name=name))
    for intervention in (None, ("freeze_at", 0)):
        with pytest.raises(ValueError, match=rf"policy '{name}' cannot be used: RuntimeError: scripted \({__file__}"):
            hebbes.evaluate(tmp_path / "a.dat", **FEW, imports=["tests.evaluation"], intervention=intervention)


@pytest.mark.parametrize("name", ["freeze_at", "reset_weights_at"])
def test_an_intervention_that_no_episode_reaches_is_refused(name, tmp_path):
    save_policy(tmp_path / "a.dat", EVERY_KIND["hebbian"])
    for cap, last in ((5, 5), (None, 500), (501, 500)):
        with pytest.raises(ValueError, match=f"{name} must be < max_episode_steps {last}, got {last}"):
            hebbes.evaluate(tmp_path / "a.dat", **FEW, max_episode_steps=cap, intervention=(name, last))


def test_a_plastic_policy_is_played_with_an_intervention(tmp_path):
    saved = EVERY_KIND["hebbian"]
    save_policy(tmp_path / "a.dat", saved)
    options = {"episodes": 5, "seed": 3, "threads": 1, "max_episode_steps": 100}
    intact = hebbes.evaluate(tmp_path / "a.dat", **options).returns
    for name, value in (("freeze_at", 0), ("reset_weights_at", 5), ("lesion", 1), ("init_weights", "zeros")):
        intervened = replace(saved, policy=INTERVENTIONS[name](saved.policy, value))
        expected = play(intervened, make_evaluation_spec(saved.environment), **options).fitness
        found = hebbes.evaluate(tmp_path / "a.dat", **options, intervention=(name, value)).returns
        assert found.tolist() == expected.tolist() != intact.tolist(), name


@pytest.mark.parametrize(
    ("intervention", "message"),
    [
        (("freeze_at", -1), "freeze_at must be >= 0, got -1"),
        (("reset_weights_at", 1.5), "reset_weights_at must be a whole number, got 1.5"),
        (("lesion", 1.5), r"lesion must be in \[0, 1\], got 1.5"),
        (("init_weights", "zero"), "init_weights must be one of .*, got 'zero', did you mean 'zeros'"),
    ],
)
def test_an_intervention_needs_a_value_that_it_can_have(intervention, message, tmp_path):
    save_policy(tmp_path / "a.dat", EVERY_KIND["hebbian"])
    with pytest.raises(ValueError, match=message):
        hebbes.evaluate(tmp_path / "a.dat", threads=1, intervention=intervention)


def test_returns_are_averaged_over_morphologies(tmp_path):
    pytest.importorskip("mujoco")
    spec = EnvironmentSpec("Ant-v5", "gymnasium", morphologies=("none", "left"))
    policy = Linear((105,), 8)
    weights = policy.initial_params(np.random.default_rng(0))
    save_policy(tmp_path / "a.dat", SavedPolicy(policy, "linear", weights, {}, "tanh", spec, {}))
    found = hebbes.evaluate(tmp_path / "a.dat", **FEW, max_episode_steps=5)
    saved = read_policy_file(tmp_path / "a.dat")
    alone = [
        play(
            saved, make_evaluation_spec(replace(spec, morphologies=(each,))), **FEW, seed=0, max_episode_steps=5
        ).fitness
        for each in spec.morphologies
    ]
    assert found.returns == pytest.approx(np.mean(alone, axis=0), rel=1e-12)
    assert found.env_steps.tolist() == [10, 10]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"episodes": 0}, r"episodes must be in \[1, 1000000\], got 0"),
        ({"episodes": 2.0}, "episodes must be a whole number, got 2.0"),
        ({"seed": -1}, "seed must be >= 0, got -1"),
        ({"threads": 0}, "threads must be from 1 to 1024, or -1 for all cores, got 0"),
        ({"threads": "all"}, "threads must be a whole number, got 'all'"),
        ({"max_episode_steps": 0}, "max_episode_steps must be >= 1, got 0"),
        ({"environment": 3}, "environment must be a text or none, got 3"),
        ({"backend": "mujoco"}, "backend must be one of auto, envpool, gymnasium, got 'mujoco'"),
        (
            {"environment": "CartPol-v1"},
            "unknown environment 'CartPol-v1'; if a package of yours registers it, add --import PACKAGE; "
            "otherwise, did you mean 'CartPole-v1'",
        ),
        (
            {"intervention": "lesion"},
            r"intervention must be a name and a value, such as \('lesion', 0.5\), got",
        ),
        (
            {"intervention": ("leson", 0.5)},
            "intervention must be one of freeze_at, .*, did you mean 'lesion'",
        ),
        ({"intervention": ("lesion", 0.5)}, "lesion is for hebbian policies, and this is Linear"),
        ({"imports": "tests"}, "imports must be a list of names of packages, such as"),
        ({"imports": ["no_such_package"]}, "unknown|cannot import 'no_such_package'"),
    ],
)
def test_mistakes_are_value_errors_of_one_line(options, message, tmp_path):
    path = save_balancing_policy(tmp_path / "a.dat")
    with pytest.raises(ValueError, match=message) as error:
        hebbes.evaluate(path, **{"environment": "CartPole-v1", "threads": 1, **options})
    assert "\n" not in str(error.value)


def test_an_environment_that_is_not_installed_is_named(tmp_path):
    saved = read_policy_file(save_balancing_policy(tmp_path / "a.dat"))
    save_policy(tmp_path / "a.dat", replace(saved, environment=EnvironmentSpec("Mine-v0", "gymnasium")))
    with pytest.raises(ValueError, match=r"unknown environment 'Mine-v0'; if a package .*, add --import"):
        hebbes.evaluate(tmp_path / "a.dat", threads=1)


def test_one_that_fails_in_its_first_env_step_is_refused_as_by_the_program(tmp_path, monkeypatch):
    def fail(self, action):
        raise RuntimeError("broken")

    monkeypatch.setattr(CartPoleEnv, "step", fail)
    with pytest.raises(ValueError, match=r"a\.dat: environment 'CartPole-v1' fails in its first env step: Runtime"):
        hebbes.evaluate(save_balancing_policy(tmp_path / "a.dat"), threads=1)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(ValueError, match=r"a\.dat: no such file$"):
        hebbes.evaluate(tmp_path / "a.dat")
    with pytest.raises(TypeError):
        hebbes.evaluate(3)


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (EngineError("RuntimeError: lost\nTraceback ..."), "a.dat: RuntimeError: lost$"),
        (StartError("5 workers were lost: worker died (exit code 1) at its start"), '__name__ == "__main__"'),
        (EngineError("5 workers were lost: worker was killed from outside at its start"), "at its start$"),
        (RuntimeError("two\nlines"), "a.dat: RuntimeError: two$"),
        (ValueError("two\nlines"), "^two lines$"),
    ],
)
def test_whatever_ends_the_play_is_a_value_error_of_one_line(error, message, tmp_path, monkeypatch):
    def fail(*arguments, **options):
        raise error

    monkeypatch.setattr(module, "play", fail)
    with pytest.raises(ValueError, match=message) as found:
        hebbes.evaluate(save_balancing_policy(tmp_path / "a.dat"), threads=1)
    assert "\n" not in str(found.value)


def test_an_exit_of_the_callers_signal_handler_passes(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "play", lambda *_, **__: sys.exit(143))
    with pytest.raises(SystemExit) as exited:
        hebbes.evaluate(save_balancing_policy(tmp_path / "a.dat"), threads=1)
    assert exited.value.code == 143
