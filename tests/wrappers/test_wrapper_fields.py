"""Options of wrappers, whose defaults do nothing."""

import inspect

import numpy as np
import pytest
from gymnasium.spaces import Box

from hebbes.contracts.option import find_unused_options, get_default, get_flag_name, list_options
from hebbes.registry.lookup import find_class, list_names
from hebbes.wrappers.base import BatchWrapper
from hebbes.wrappers.early_stop import EarlyStop
from tests.scripted import ScriptedEnv
from tests.wrappers.users_wrappers import Doubled

GYMNASIUM_WRAPPERS = {"bullet_distance", "bullet_grace"}
NAMES = sorted(set(list_names("wrapper")) - GYMNASIUM_WRAPPERS)
WITH_OPTIONS = {
    "crop": ["crop"],
    "early_stop": ["early_stop_negative_streak", "early_stop_grace_steps", "early_stop_counts_grace"],
    "frame_stack": ["frame_stack"],
    "resize": ["resize"],
    "settle": ["settle_steps"],
}
SWITCHES = {"atari_42", "fire_reset", "grayscale"}
IMAGES = Box(0, 255, (8, 6, 3), np.uint8)


@pytest.mark.parametrize("name", NAMES)
def test_the_flags_of_wrappers(name):
    found = find_class("wrapper", name)
    assert [get_flag_name(each) for each in list_options(found)] == WITH_OPTIONS.get(name, [])
    assert all(each.kw_only and each.metadata["help"] for each in list_options(found))
    assert bool(found.switch) == (name in SWITCHES)
    assert found.training_only == (name == "early_stop")


@pytest.mark.parametrize("name", WITH_OPTIONS)
@pytest.mark.parametrize("explicit", [False, True])
def test_the_defaults_of_a_wrapper_do_nothing(name, explicit):
    found = find_class("wrapper", name)
    defaults = {each.name: get_default(each) for each in list_options(found)}
    inner, plain = (ScriptedEnv(2, observation_space=IMAGES, rewards=[-1], terminate_at=[2, 0]) for _ in range(2))
    env = found(inner, **(defaults if explicit else {}))
    assert (env.observation_space, env.action_space) == (inner.observation_space, inner.action_space)
    for episode in range(2):
        np.testing.assert_array_equal(env.start(episode), plain.start(episode))
        for active in (np.array([1, 0]), np.array([0, 1]), np.array([1])):
            ours, theirs = (each.step(np.zeros((len(active), 2), np.float32), active) for each in (env, plain))
            for part in ("observations", "rewards", "terminated", "truncated"):
                np.testing.assert_array_equal(getattr(ours, part), getattr(theirs, part))


def test_early_stopping_needs_a_streak_and_counts_grace_needs_a_grace_period():
    defaults = {each.name: get_default(each) for each in list_options(EarlyStop)}
    assert find_unused_options(EarlyStop, defaults) == {
        "grace_steps": "--early_stop_negative_streak",
        "counts_grace": "--early_stop_grace_steps other than 0",
    }
    assert find_unused_options(EarlyStop, {**defaults, "negative_streak": 0, "grace_steps": 1}) == {}


class Patient(EarlyStop):
    """A user's wrapper around one of ours with options."""

    def __init__(self, env, *, patience: int):
        super().__init__(env, negative_streak=patience)


def test_users_wrappers_may_have_a_constructor_of_their_own():
    env = Patient(Doubled(ScriptedEnv(2, rewards=[-1]), plus=0.5), patience=1)
    assert env.num_envs == env.env.num_envs == 2
    assert str(inspect.signature(Doubled)) == "(env, *, plus: float = 1.0)"
    env.start(0)
    for truncated in (False, True):
        env_step = env.step(np.zeros((2, 2)), np.array([0, 1]))
        assert env_step.rewards.tolist() == [-1.5, -1.5]
        assert env_step.truncated.tolist() == [truncated, truncated]


def test_wrappers_are_told_apart_by_identity():
    inner = ScriptedEnv(1)
    assert BatchWrapper(inner) != BatchWrapper(inner)
    assert len({BatchWrapper(inner), BatchWrapper(inner)}) == 2
