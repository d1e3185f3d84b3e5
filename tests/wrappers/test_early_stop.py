import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hebbes.wrappers.early_stop import EarlyStop
from tests.scripted import ScriptedEnv

ACTION = np.zeros((1, 2), np.float32)
ACTIVE = np.array([0])


def find_length(rewards, limit=400, **options):
    """Env step at which the only sub-environment is truncated, 0 for never."""
    env = EarlyStop(ScriptedEnv(1, rewards=rewards), **options)
    env.start(0)
    for env_step in range(1, limit):
        if env.step(ACTION, ACTIVE).truncated[0]:
            return env_step
    return 0


@pytest.mark.parametrize(
    ("rewards", "options", "expected"),
    [
        ([-1] * 20 + [1], {"negative_streak": 20}, 0),
        ([-1] * 21 + [1], {"negative_streak": 20}, 21),
        ([-1] * 20 + [0] + [-1] * 21, {"negative_streak": 20}, 42),
        ([-0.1], {"negative_streak": 0}, 1),
        ([1] * 5 + [-1], {"negative_streak": 20}, 26),
        ([-1], {"negative_streak": 30, "grace_steps": 200, "counts_grace": True}, 201),
        ([1] * 169 + [-1] * 31 + [1], {"negative_streak": 30, "grace_steps": 200, "counts_grace": True}, 0),
        ([1] * 170 + [-1] * 31 + [1], {"negative_streak": 30, "grace_steps": 200, "counts_grace": True}, 201),
        ([1] * 180 + [-1], {"negative_streak": 30, "grace_steps": 200, "counts_grace": True}, 211),
        ([-1], {"negative_streak": 30, "grace_steps": 201}, 232),
        ([1] * 201 + [-1] * 30 + [1], {"negative_streak": 30, "grace_steps": 201}, 0),
        ([-1], {}, 0),
        ([-1, -1, np.nan, -1, -1, 0], {"negative_streak": 2}, 0),
    ],
)
def test_stops_at_the_right_env_step(rewards, options, expected):
    assert find_length(rewards, **options) == expected


def test_a_streak_does_not_outlive_its_episode():
    env = EarlyStop(ScriptedEnv(1, rewards=[-1]), negative_streak=2)
    env.start(0)
    env.step(ACTION, ACTIVE)
    env.start(1)
    assert [bool(env.step(ACTION, ACTIVE).truncated[0]) for _ in range(3)] == [False, False, True]


def test_the_last_reward_is_returned():
    env = EarlyStop(ScriptedEnv(1, rewards=[-1, -2, -4]), negative_streak=2)
    env.start(0)
    assert [float(env.step(ACTION, ACTIVE).rewards[0]) for _ in range(3)] == [-1, -2, -4]


def test_a_terminated_episode_is_not_truncated_too():
    env = EarlyStop(ScriptedEnv(2, rewards=[-1], terminate_at=[3, 0]), negative_streak=2)
    env.start(0)
    for _ in range(3):
        step = env.step(np.zeros((2, 2)), np.array([1, 0]))
    assert step.terminated.tolist() == [False, True]
    assert step.truncated.tolist() == [True, False]


def test_the_environments_own_truncation_stays():
    env = EarlyStop(ScriptedEnv(1, rewards=[1], truncate_at=2), negative_streak=0)
    env.start(0)
    assert [bool(env.step(ACTION, ACTIVE).truncated[0]) for _ in range(2)] == [False, True]


def find_length_slowly(rewards, negative_streak, grace_steps, counts_grace):
    streak = 0
    for env_step, reward in enumerate(rewards, start=1):
        streak = streak + 1 if reward < 0 and (counts_grace or env_step > grace_steps) else 0
        if streak > negative_streak and env_step > grace_steps:
            return env_step
    return 0


@settings(max_examples=60)
@given(data=st.data(), negative_streak=st.integers(0, 4), grace_steps=st.integers(0, 8), counts_grace=st.booleans())
def test_equals_one_sub_environment_at_a_time(data, negative_streak, grace_steps, counts_grace):
    rows = st.lists(st.sampled_from([-1.0, -0.5, 0.0, 1.0]), min_size=12, max_size=12)
    rewards = data.draw(st.lists(rows, min_size=1, max_size=4))
    options = {"negative_streak": negative_streak, "grace_steps": grace_steps, "counts_grace": counts_grace}
    env = EarlyStop(ScriptedEnv(len(rewards), rewards=rewards), **options)
    env.start(0)
    lengths, env_steps = np.zeros(len(rewards), int), np.zeros(len(rewards), int)
    while (running := np.flatnonzero((lengths == 0) & (env_steps < 12))).size:
        active = np.array(data.draw(st.lists(st.sampled_from(running), min_size=1, unique=True)))
        env_steps[active] += 1
        stopped = active[env.step(np.zeros((len(active), 2)), active).truncated]
        lengths[stopped] = env_steps[stopped]
    assert lengths.tolist() == [find_length_slowly(row, **options) for row in rewards]
