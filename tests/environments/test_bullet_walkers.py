"""PyBullet's walkers are faster than in their package, and not a bit of theirs is changed."""

from importlib.util import find_spec

import gymnasium
import numpy as np
import pytest

from hebbes.environments import bullet_walkers
from hebbes.environments.bullet_walkers import accelerate_walker
from hebbes.environments.gymnasium_env import GymnasiumEnv
from hebbes.environments.ids import register
from hebbes.environments.morphologies import SPECIES, provide_morphology_file

pytestmark = pytest.mark.skipif(find_spec("pybullet") is None, reason="PyBullet is not installed")
WALKERS = [f"{name}BulletEnv-v0" for name in ("Ant", "HalfCheetah", "Hopper", "Humanoid", "Walker2D")]


def make(environment):
    """A walker as its package makes it."""
    register(environment, ())
    return gymnasium.make(environment, disable_env_checker=True)


def is_accelerated(env):
    """Whether a method of the robot has been replaced."""
    return "calc_state" in vars(env.unwrapped.robot)


def check_same_numbers(plain, accelerated, env_steps):
    """Plays both with the same random actions, some out of bounds, and compares all that an env step gives."""
    assert is_accelerated(accelerated) and not is_accelerated(plain)
    rng, played = np.random.default_rng(0), 0
    for episode in range(env_steps):
        first, other = (env.reset(seed=episode)[0] for env in (plain, accelerated))
        np.testing.assert_array_equal(first, other, strict=True)
        ended = False
        while not ended and played < env_steps:
            action = rng.normal(size=plain.action_space.shape).astype(np.float32)
            (seen, *theirs), (also_seen, *ours) = (env.step(action.copy()) for env in (plain, accelerated))
            np.testing.assert_array_equal(seen, also_seen, strict=True)
            assert ours == theirs
            assert accelerated.unwrapped.rewards == plain.unwrapped.rewards
            played, ended = played + 1, theirs[1] or theirs[2]
    plain.close()
    accelerated.close()


@pytest.mark.slow
@pytest.mark.parametrize("environment", WALKERS)
def test_every_walker_gives_the_numbers_of_its_package(environment):
    check_same_numbers(make(environment), accelerate_walker(make(environment)), 600)


def test_the_walkers_that_are_trained_are_accelerated():
    register("AntBulletEnv-v0", ())
    env = GymnasiumEnv("AntBulletEnv-v0", [0], {})
    assert is_accelerated(env._envs[0])
    env.close()


def test_a_damaged_ant_does_too():
    with provide_morphology_file("AntBulletEnv-v0", "left") as path:
        make_ant = SPECIES["AntBulletEnv-v0"].make_with_morphology
        plain = make_ant(lambda: make("AntBulletEnv-v0"), path)
        accelerated = make_ant(lambda: accelerate_walker(make("AntBulletEnv-v0")), path)
        check_same_numbers(plain, accelerated, 200)


@pytest.mark.parametrize("environment", ["HumanoidFlagrunBulletEnv-v0", "ReacherBulletEnv-v0"])
def test_other_robots_of_the_package_are_left_alone(environment):
    env = accelerate_walker(make(environment))
    assert not is_accelerated(env)
    env.close()


def test_another_version_of_the_package_is_left_alone(monkeypatch):
    monkeypatch.setattr(bullet_walkers, "_VERSION", "0.5.0")
    env = accelerate_walker(make("AntBulletEnv-v0"))
    assert not is_accelerated(env)
    env.close()
