"""With `--action_bounds none` simulators get the outputs as they are; one that refuses them is named before the run."""

import gymnasium
import numpy as np
import pytest
from gymnasium.spaces import Box

from hebbes.environments.environment_spec import EnvironmentSpec
from hebbes.environments.make_batch_env import make_batch_env
from hebbes.environments.part_spec import PartSpec
from hebbes.environments.trial import check_accepts_unbounded_actions
from hebbes.evaluation.play import make_evaluation_spec, play
from hebbes.execution.episode import Agent, run_episode
from hebbes.files.policy_file import read_policy_file
from hebbes.options.command_line import parse_config
from hebbes.options.program_options import parse_options
from hebbes.policies.mlp import MLP
from hebbes.programs.import_reference import ImportConfig
from hebbes.training.agent_and_environment import make_environment_spec
from hebbes.training.prepare import prepare
from hebbes.training.run import execute
from hebbes.wrappers.base import BatchWrapper

POLICY = MLP((17,), 6, hidden_sizes=(16,), bias=True)
WEIGHTS = np.random.default_rng(3).normal(0, 0.5, (1, POLICY.layout.num_params)).astype(np.float32)
CONTROL_COST = 0.1  # of HalfCheetah-v5, times the squared length of the action


class RecordActions(BatchWrapper):
    """Records its actions."""

    def __init__(self, env):
        super().__init__(env)
        self.actions = []

    def step(self, actions, active):
        self.actions.append(actions[0].copy())
        return super().step(actions, active)


def play_episode(backend, *wrappers):
    """The return of one episode of HalfCheetah-v5, and the actions in it."""
    spec = EnvironmentSpec("HalfCheetah-v5", backend, wrappers=wrappers)
    env = RecordActions(make_batch_env(spec, [5], threads=1, training=True))
    rngs = [np.random.default_rng(0)]
    result = run_episode(Agent(POLICY, "identity"), env, WEIGHTS, 0, rngs, buffers={}, max_episode_steps=200)
    env.close()
    return result.returns[0], np.array(env.actions, np.float64)


@pytest.mark.parametrize("backend", ["envpool", "gymnasium"])
def test_the_control_cost_counts_what_lies_beyond_the_bounds(backend):
    free, said = play_episode(backend)
    clipped, said_then = play_episode(backend, PartSpec("clip_action"))
    assert np.array_equal(said, said_then)  # the motors in MuJoCo clip too, so that the bodies move alike
    excess = np.square(said).sum() - np.square(np.clip(said, -1, 1)).sum()
    assert CONTROL_COST * excess > 10
    assert free - clipped == pytest.approx(-CONTROL_COST * excess, rel=1e-5)


def test_the_preset_of_es_torch_trains_and_evaluates_unclipped(tmp_path):
    flags = ["--environment", "HalfCheetah-v5", "--preset", "es_torch", "--folder", str(tmp_path), "--run_name", "a"]
    flags += ["--popsize", "2", "--generations", "1", "--max_episode_steps", "5", "--eval_episodes", "1"]
    (run,) = prepare(parse_config("static", [*flags, "--test_episodes", "0", "--threads", "1"], ""))
    assert (run.config.trainer_options.episode_seeds, run.task.agent.policy.initialization) == ("independent", "xavier")
    execute(run)
    saved = read_policy_file(run.folder / "best.dat")
    assert (saved.environment.wrappers, saved.action_head) == ((), "identity")
    saved.weights[-6:] = 1000  # the biases of the outputs
    for backend in ("envpool", "gymnasium"):
        environment = make_evaluation_spec(saved.environment, backend=backend)
        (score,) = play(saved, environment, episodes=1, seed=0, threads=1, max_episode_steps=5).fitness
        assert score == pytest.approx(-CONTROL_COST * 5 * 6 * 1000**2, rel=0.02)


class Strict(gymnasium.Env):
    """Refuses actions beyond its bounds."""

    observation_space = Box(-1, 1, (2,), np.float32)
    action_space = Box(np.float32([-1, 0]), np.float32([1, 5]))

    def reset(self, *, seed=None, options=None):
        return np.zeros(2, np.float32), {}

    def step(self, action):
        assert self.action_space.contains(action), f"{action} is out of bounds"
        return np.zeros(2, np.float32), 0.0, False, True, {}


class FromZero(Strict):
    """Refuses negative actions, and has no upper bound."""

    action_space = Box(0, np.inf, (2,), np.float32)


class Boundless(Strict):
    """Has no bounds."""

    action_space = Box(-np.inf, np.inf, (2,), np.float32)


for kind in (Strict, FromZero, Boundless):
    gymnasium.register(f"{kind.__name__}-v0", entry_point=kind)


def test_a_simulator_that_refuses_them_is_named_before_anything_is_made(tmp_path, capsys):
    flags = ["--environment", "Strict-v0", "--action_bounds", "none", "--folder", str(tmp_path)]
    with pytest.raises(
        ValueError,
        match=r"^action_bounds 'none' is not for Strict-v0, .*\[ 3. 10.\] is out of bounds\); allowed: clip, tanh,",
    ):
        prepare(parse_config("static", flags, ""))
    assert not list(tmp_path.iterdir())
    assert capsys.readouterr().err == ""
    assert prepare(parse_config("static", [*flags, "--action_bounds", "clip"], ""))


def test_bounds_are_tried_on_the_side_that_has_one():
    with pytest.raises(ValueError, match=r"\[-1. -1.\] is out of bounds"):
        check_accepts_unbounded_actions(EnvironmentSpec("FromZero-v0", "gymnasium"), FromZero.action_space)
    check_accepts_unbounded_actions(EnvironmentSpec("Boundless-v0", "gymnasium"), Boundless.action_space)


def test_none_is_a_text_where_it_is_a_choice(tmp_path):
    assert parse_options(ImportConfig, ["--action_bounds", "none"], "") == {"action_bounds": "none"}
    file = tmp_path / "options.yaml"
    file.write_text("environment: Pendulum-v1\naction_bounds: none\n")
    config = parse_config("static", ["--config", str(file)], "")
    assert config.environment.action_bounds == "none"
    assert make_environment_spec(config).wrappers == ()
    file.write_text(config.format_as_yaml())
    assert parse_config("static", ["--config", str(file)], "").as_options() == config.as_options()
