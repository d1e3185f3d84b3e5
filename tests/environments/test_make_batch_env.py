"""Descriptions become wrapped environments that follow them, or are refused with the reason."""

import os
from pathlib import Path

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

from hebbes.environments.environment_spec import EnvironmentSpec
from hebbes.environments.ids import resolve
from hebbes.environments.make_batch_env import make_batch_env
from hebbes.environments.part_spec import PartSpec
from hebbes.options.command_line import parse_config
from hebbes.training.agent_and_environment import make_environment_spec
from hebbes.wrappers.base import BatchWrapper
from tests.python_process import run_python

DOUBLED = "tests.wrappers.users_wrappers:Doubled"


class MinusOne(gymnasium.RewardWrapper):
    """A user's gymnasium.Wrapper."""

    def __init__(self, env, *, minus: float = 1.0):
        super().__init__(env)
        self.minus = minus

    def reward(self, reward):
        return reward - self.minus


class OddlyNamed(gymnasium.Wrapper):
    """A user's wrapper whose first parameter is not called `env`."""

    def __init__(self, inner, size=3):
        super().__init__(inner)


def find_first_reward(spec, **arguments) -> float:
    """The first reward of CartPole, which is 1 without wrappers."""
    env = make_batch_env(spec, [0], threads=1, **{"training": False, **arguments})
    env.start(0)
    return float(env.step(np.zeros(1, np.int64), np.array([0])).rewards[0])


def describe_cart_pole(backend="envpool", **parts) -> EnvironmentSpec:
    return EnvironmentSpec("CartPole-v1", backend, **parts)


@pytest.mark.parametrize("backend", ["envpool", "gymnasium"])
def test_options_reach_the_simulator(backend):
    """HalfCheetah's control cost is its weight times the squared action, here 6."""
    rewards = []
    for weight in (0.0, 2.0):
        spec = EnvironmentSpec("HalfCheetah-v5", backend, {"ctrl_cost_weight": weight})
        env = make_batch_env(spec, [0], threads=1, training=False)
        env.start(0)
        rewards.append(env.step(np.ones((1, 6)), np.array([0])).rewards[0])
    assert rewards[0] - rewards[1] == pytest.approx(12, abs=1e-5)


@pytest.mark.parametrize("backend", ["envpool", "gymnasium"])
def test_the_continuous_lander(backend):
    resolved = resolve("LunarLanderContinuous-v2")
    spec = EnvironmentSpec(resolved.environment, backend, resolved.env_kwargs)
    env = make_batch_env(spec, [0, 1], threads=1, training=False)
    assert env.action_space == spaces.Box(-1, 1, (2,), np.float32)
    assert env.start(0).shape == (2, 8)


@pytest.mark.parametrize("backend", ["envpool", "gymnasium"])
@pytest.mark.parametrize("wrong", [-1, 7.0, "x"])
def test_what_is_no_probability_is_refused(backend, wrong):
    spec = EnvironmentSpec("Pong-v5", backend, {"repeat_action_probability": wrong})
    with pytest.raises(ValueError, match=r"repeat_action_probability of 'Pong-v5' must be in \[0, 1\], got "):
        make_batch_env(spec, [0], threads=1, training=False).start(0)


def test_wrappers_nest_innermost_first_and_training_ones_outermost():
    doubled = PartSpec(DOUBLED)
    plus_ten = PartSpec(DOUBLED, {"plus": 10.0})
    spec = describe_cart_pole(wrappers=(doubled, plus_ten), training_wrappers=(doubled,))
    assert find_first_reward(spec) == 2 * (2 * 1 + 1) + 10
    assert find_first_reward(spec, training=True) == 2 * (2 * (2 * 1 + 1) + 10) + 1


def test_a_users_gymnasium_wrapper_is_inside_the_batch_wrappers():
    inner = PartSpec("tests.environments.test_make_batch_env:MinusOne", {"minus": 4.0})
    outer = PartSpec(DOUBLED)
    assert (
        find_first_reward(describe_cart_pole("gymnasium", gymnasium_wrappers=(inner,), wrappers=(outer,)))
        == 2 * (1 - 4) + 1
    )


@pytest.mark.parametrize(
    ("parts", "reason"),
    [
        ({"wrappers": (PartSpec("early_stopp"),)}, "unknown wrapper 'early_stopp', did you mean 'early_stop'"),
        ({"wrappers": (PartSpec(DOUBLED, {"minus": 1}),)}, "has no argument 'minus'; it takes"),
        ({"wrappers": (PartSpec("settle", {"steps": 1}),)}, "'settle' has no argument 'steps'; it takes num_steps$"),
        ({"wrappers": (PartSpec("clip_action", {"low": 1}),)}, "no argument 'low'; it takes none"),
        ({"wrappers": (PartSpec("resize"),)}, "'resize' cannot be made with no arguments; it takes size$"),
        ({"wrappers": (PartSpec("bullet_distance"),)}, "to be named in gymnasium_wrappers"),
        ({"gymnasium_wrappers": (PartSpec(DOUBLED),)}, "is not a gymnasium.Wrapper"),
        ({"gymnasium_wrappers": (PartSpec("bullet_distance"),)}, "bullet_distance needs a Bullet walker"),
        ({"gymnasium_wrappers": (PartSpec(f"{__name__}:OddlyNamed", {"a": 1}),)}, "no argument 'a'; it takes size$"),
        ({"env_kwargs": {"wheels": 3}}, "'CartPole-v1' cannot be made with options {'wheels': 3}"),
    ],
)
def test_wrong_parts_are_refused(parts, reason):
    with pytest.raises(ValueError, match=reason):
        make_batch_env(describe_cart_pole("gymnasium", **parts), [0], threads=1, training=True)


@pytest.mark.parametrize(
    ("seeds", "arguments", "reason"),
    [
        ([], {}, "seeds must be at least one"),
        ([-1], {}, "seeds must be .*got \\[-1\\]"),
        ([2**31], {}, "seeds must be"),
        ([0], {"threads": 0}, "threads must be >= 1, got 0"),
        ([0], {"render_mode": "rgb_array"}, "render_mode 'rgb_array' needs backend 'gymnasium', got 'envpool'"),
    ],
)
def test_wrong_arguments_are_refused(seeds, arguments, reason):
    with pytest.raises(ValueError, match=reason):
        make_batch_env(describe_cart_pole(), seeds, **{"threads": 1, "training": True, **arguments})


def test_a_file_that_asks_envpool_for_what_it_cannot_do_is_refused():
    with pytest.raises(ValueError, match="backend 'envpool' cannot be used: EnvPool has no 'AntBulletEnv-v0'"):
        make_batch_env(EnvironmentSpec("AntBulletEnv-v0", "envpool"), [0], threads=1, training=False)


def test_bullet_distance_is_the_way_made_towards_the_target():
    """The target is far ahead along x. Rewards are divided by the 0.0165 s of an env step: one unit is 0.0165 m."""
    spec = EnvironmentSpec("AntBulletEnv-v0", "gymnasium", gymnasium_wrappers=(PartSpec("bullet_distance"),))
    env = make_batch_env(spec, [0], threads=1, training=False)
    env.start(0)
    robot = env._envs[0].unwrapped.robot

    def distance() -> float:
        return float(np.hypot(robot.walk_target_x - robot.body_xyz[0], robot.walk_target_y - robot.body_xyz[1]))

    rng = np.random.default_rng(0)
    for _ in range(20):
        before = distance()
        reward = env.step(rng.uniform(-1, 1, (1, 8)), np.array([0])).rewards[0]
        assert reward == pytest.approx((before - distance()) / 0.0165, abs=1e-6)


FORMER_ANT = EnvironmentSpec(
    "AntBulletEnv-v0",
    "gymnasium",
    gymnasium_wrappers=(PartSpec("hebbes.wrappers.bullet_grace:BulletGrace"),),
    wrappers=(PartSpec("settle", {"num_steps": 40}),),
)


@pytest.mark.parametrize("former", [False, True])
def test_the_ant_of_our_presets_may_get_up_from_the_floor(former):
    """It has as long as in the source; one env step less in policy files that do not say how long."""
    spec = make_environment_spec(parse_config("static", ["--environment", "AntBulletEnv-v0"], ""))
    env = make_batch_env(FORMER_ANT if former else spec, [0], threads=1, training=True)
    for episode in range(2):
        env.start(episode)
        inner = env
        while isinstance(inner, BatchWrapper):
            inner = inner.env
        height = inner._envs[0].unwrapped.robot.body_xyz[2]
        assert height < 0.26  # below this the simulator ends the episode; zero actions lead there
        ended = [
            env.step(np.zeros((1, 8), np.float32), np.array([0])).terminated[0] for _ in range(200 if former else 201)
        ]
        assert not any(ended)
        assert env.step(np.zeros((1, 8), np.float32), np.array([0])).terminated[0]
    env.close()


def test_nothing_of_the_simulators_is_loaded_or_printed_early(tmp_path):
    """Standard output and the working folder are for results. Optional packages load only for ids that need them."""
    program = """
import sys
from hebbes.environments.environment_spec import EnvironmentSpec
from hebbes.environments.make_batch_env import make_batch_env
make_batch_env(EnvironmentSpec("CartPole-v1", "gymnasium"), [0], threads=1, training=False).start(0)
print(sorted({"envpool", "ale_py", "mujoco", "pybullet", "pybullet_envs_gymnasium"} & set(sys.modules)))
for name in ("AntBulletEnv-v0", "HalfCheetah-v5", "Pong-v5"):
    make_batch_env(EnvironmentSpec(name, "gymnasium"), [0, 1], threads=1, training=False).start(0)
print("pybullet" in sys.modules, "mujoco" in sys.modules)
"""
    path = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    done = run_python("-c", program, cwd=tmp_path, env=path)
    assert (done.stdout, done.stderr) == ("[]\nTrue True\n", "")
    assert not list(tmp_path.iterdir())


def test_lists_are_tuples_for_gymnasiums_own_wrappers():
    """An option has lists, also one that was given in Python."""
    shape = PartSpec("gymnasium.wrappers:ReshapeObservation", {"shape": [2, 2]})
    env = make_batch_env(describe_cart_pole("gymnasium", gymnasium_wrappers=(shape,)), [3], threads=1, training=True)
    assert env.start(0).shape == (1, 2, 2)
    env.close()
