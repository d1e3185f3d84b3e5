"""The contract of every wrapper. One row of CASES tests a new wrapper."""

from dataclasses import replace

import numpy as np
import pytest
from gymnasium.spaces import Box, Discrete, MultiBinary, MultiDiscrete

from hebbes.contracts.environment import EnvStep
from hebbes.registry.lookup import find_class, list_names
from hebbes.wrappers.base import BatchWrapper, replace_rows
from tests.scripted import ScriptedEnv

IMAGES = Box(0, 255, (8, 6, 3), np.uint8)
BOUNDED = Box(np.array([-2.0, 0.0]), np.array([1.0, 5.0]), dtype=np.float64)
NUM_ENVS = 5
ENV_STEPS = 6
ELSEWHERE = {"bullet_distance", "bullet_grace"}  # wrap gymnasium.Env

CASES = [
    ("clip_action", {}, {"action_space": BOUNDED, "action_weight": 1.0}),
    ("rescale_action", {}, {"action_space": BOUNDED, "action_weight": 1.0}),
    ("early_stop", {"negative_streak": 2, "grace_steps": 3}, {"rewards": np.tile([[-1], [1]], (3, 1))[:NUM_ENVS]}),
    ("frame_stack", {"num_frames": 3}, {}),
    ("frame_stack", {"num_frames": 2}, {"observation_space": IMAGES}),
    ("crop", {"edges": [1, 0, 2, 3]}, {"observation_space": IMAGES}),
    ("grayscale", {}, {"observation_space": IMAGES}),
    ("resize", {"size": [5, 4]}, {"observation_space": IMAGES}),
    ("scale", {}, {"observation_space": IMAGES}),
    ("channels_last", {}, {"observation_space": Box(0, 255, (3, 8, 6), np.uint8)}),
    ("choose_action", {}, {"action_space": MultiDiscrete([2, 3], start=[0, -4]), "action_weight": 1.0}),
    ("choose_action", {}, {"action_space": MultiBinary([1, 2]), "action_weight": 1.0}),
    ("flatten_action", {}, {"action_space": Box(-9, 9, (1, 2), np.float64), "action_weight": 1.0}),
    ("atari_42", {}, {"observation_space": Box(0, 255, (210, 160, 3), np.uint8)}),
    ("running_normalization", {"decay": 0.9}, {}),
    ("one_hot", {}, {"observation_space": Discrete(7, start=2)}),
    ("settle", {"num_steps": 3}, {"terminate_at": [0, 2, 0, 3, 0]}),
    ("settle", {"num_steps": 2}, {"action_space": MultiBinary(2)}),
    (
        "fire_reset",
        {},
        {
            "action_space": Discrete(4),
            "lives": np.add.outer(np.arange(NUM_ENVS), [3, 3, 2, 2, 1, 1, 0]),
            "terminate_at": [0, 1, 0, 0, 0],
        },
    ),
]
every_wrapper = pytest.mark.parametrize(("stem", "settings", "script"), CASES)


def build(stem, settings, script):
    inner = ScriptedEnv(NUM_ENVS, **script)
    return find_class("wrapper", stem)(inner, **settings), inner


def make_actions(env, active):
    """Read-only actions, different for every sub-environment, some outside the bounds of Box spaces."""
    numbers = np.arange(1, 1 + np.prod(env.action_space.shape or ()))  # 1.0, 2.0 for a Box of two
    actions = np.ones(len(active), np.int64) if isinstance(env.action_space, Discrete) else active[:, None] - numbers
    actions.setflags(write=False)
    return actions


def play(env, episode, groups):
    """Plays one episode and steps the sub-environments in groups.

    Returns the first observations, for each sub-environment its list of (row, env step), and all env steps.
    """
    first = env.start(episode)
    rows, running = {index: [] for index in range(NUM_ENVS)}, np.ones(NUM_ENVS, bool)
    steps = []
    for _ in range(ENV_STEPS):
        for group in groups:
            active = np.array([index for index in group if running[index]], np.int64)
            if not active.size:
                continue
            step = env.step(make_actions(env, active), active)
            running[active] = ~(step.terminated | step.truncated)
            steps.append(step)
            for row, index in enumerate(active):
                rows[index].append((row, step))
    return first, rows, steps


def list_arrays(step: EnvStep):
    return [step.observations, step.rewards, step.terminated, step.truncated, *step.info.values()]


def assert_same_rows(left, right):
    for index in range(NUM_ENVS):
        assert len(left[index]) == len(right[index]) > 0
        for (i, a), (j, b) in zip(left[index], right[index], strict=True):
            for x, y in zip(list_arrays(a), list_arrays(b), strict=True):
                np.testing.assert_array_equal(x[i], y[j])


def test_every_wrapper_has_a_case():
    assert {stem for stem, _, _ in CASES} == set(list_names("wrapper")) - ELSEWHERE


@every_wrapper
def test_observations_lie_in_their_space(stem, settings, script):
    env, _ = build(stem, settings, script)
    first, _, steps = play(env, 0, [range(NUM_ENVS)])
    for observations in (first, *(step.observations for step in steps)):
        assert observations.dtype == env.observation_space.dtype
        assert all(env.observation_space.contains(row) for row in observations)


@every_wrapper
def test_rows_follow_active(stem, settings, script):
    together, _ = build(stem, settings, script)
    apart, _ = build(stem, settings, script)
    first, expected, _ = play(together, 1, [range(NUM_ENVS)])
    second, rows, _ = play(apart, 1, [(3, 0), (4, 1, 2)])
    np.testing.assert_array_equal(first, second)
    assert_same_rows(rows, expected)


@every_wrapper
def test_nothing_of_an_episode_reaches_the_next(stem, settings, script):
    reused, _ = build(stem, settings, script)
    fresh, _ = build(stem, settings, script)
    play(reused, 0, [range(NUM_ENVS)])
    first, rows, _ = play(reused, 1, [range(NUM_ENVS)])
    expected_first, expected, _ = play(fresh, 1, [range(NUM_ENVS)])
    np.testing.assert_array_equal(first, expected_first)
    assert_same_rows(rows, expected)


@every_wrapper
def test_returned_arrays_never_change_later(stem, settings, script):
    env, _ = build(stem, settings, script)
    kept, before = [], []
    for _ in range(2):
        first = env.start(0)
        kept.append(first)
        before.append(first.copy())
        running = np.arange(NUM_ENVS)
        for _ in range(4):
            step = env.step(make_actions(env, running), running)
            kept.extend(list_arrays(step))
            before.extend(array.copy() for array in list_arrays(step))
            running = running[~(step.terminated | step.truncated)]
    for array, copy in zip(kept, before, strict=True):
        np.testing.assert_array_equal(array, copy)


@every_wrapper
def test_forwards_the_rest(stem, settings, script):
    env, inner = build(stem, settings, script)
    assert env.num_envs == NUM_ENVS
    env.close()
    env.close()
    assert inner.times_closed == 2
    with pytest.raises(TypeError, match="ScriptedEnv cannot render"):
        env.render()
    frame = np.zeros((2, 2, 3), np.uint8)
    inner.render = lambda: frame
    assert env.render() is frame


@every_wrapper
def test_a_failed_simulator_is_reported_as_such(stem, settings, script):
    # 1 fails in the opening, if there is one; 2 fails after the longest opening
    env, _ = build(stem, settings, {**script, "terminate_at": 0, "fault_at": [0, 1, 4, 0, 0]})
    _, rows, steps = play(env, 0, [(4, 1, 2), (0, 3)])
    for index in (1, 2):
        row, last = rows[index][-1]
        assert last.faults[index] == f"fault of sub-environment {index}"
        assert np.isnan(last.rewards[row]) and last.terminated[row]
    assert sum(len(step.faults) for step in steps) == 2


def test_the_base_wrapper_changes_nothing():
    inner = ScriptedEnv(NUM_ENVS)
    env = BatchWrapper(inner)
    assert env.observation_space is inner.observation_space
    assert env.action_space is inner.action_space
    _, expected, _ = play(ScriptedEnv(NUM_ENVS), 2, [range(NUM_ENVS)])
    _, rows, _ = play(env, 2, [range(NUM_ENVS)])
    assert inner.episodes == [2]
    assert_same_rows(rows, expected)


def test_env_steps_are_joined_on_the_info_that_both_carry():
    def env_step(value, rows, **info):
        flags = np.zeros(rows, bool)
        return EnvStep(np.full((rows, 1), value), np.full(rows, value), flags, flags, info)

    whole = env_step(1.0, 3, lives=np.array([3, 3, 3]), color=np.array([0, 0, 0]))
    joined = replace_rows(whole, np.array([2, 0]), env_step(5.0, 2, lives=np.array([1, 2])))
    assert joined.rewards.tolist() == [5, 1, 5]
    assert {key: values.tolist() for key, values in joined.info.items()} == {"lives": [2, 3, 1]}
    faulty = replace(env_step(5.0, 1), faults={2: "theirs"})
    assert replace_rows(replace(whole, faults={0: "ours"}), np.array([2]), faulty).faults == {0: "ours", 2: "theirs"}


@pytest.mark.parametrize(
    ("stem", "settings", "script", "message"),
    [
        ("clip_action", {}, {"action_space": Discrete(3)}, "clip_action needs a Box action space of floats, got Disc"),
        ("rescale_action", {}, {"action_space": Discrete(3)}, "rescale_action needs a Box action space of floats"),
        ("rescale_action", {}, {"action_space": Box(0.0, np.inf, (1,))}, r"finite action bounds.*high=\[inf\]"),
        ("early_stop", {"negative_streak": -1}, {}, "early_stop_negative_streak must be >= 0, got -1"),
        (
            "early_stop",
            {"negative_streak": 2.5},
            {},
            "negative_streak must be a whole number or none, got 2.5",
        ),
        ("early_stop", {"negative_streak": True}, {}, "early_stop_negative_streak must be a whole number .*, got True"),
        ("early_stop", {"negative_streak": 1, "grace_steps": -2}, {}, "early_stop_grace_steps must be >= 0, got -2"),
        ("frame_stack", {"num_frames": 0}, {}, r"frame_stack must be in \[1, 256\], got 0"),
        ("frame_stack", {"num_frames": 2}, {"observation_space": Discrete(2)}, "frame_stack needs vectors or images"),
        ("frame_stack", {"num_frames": 2}, {"observation_space": Box(-1, 1, (4, 4))}, "frame_stack needs vectors or"),
        ("frame_stack", {"num_frames": 2}, {"observation_space": Box(0, 1, (3, 9, 9))}, "frame_stack needs vectors or"),
        ("crop", {"edges": [1, 0, 0, 0]}, {}, "crop needs uint8 image observations"),
        ("crop", {"edges": [4, 4, 0, 0]}, {"observation_space": IMAGES}, r"nothing: got \[4, 4, 0, 0\] .* \[8, 6\]"),
        ("crop", {"edges": [-1, 0, 0, 0]}, {"observation_space": IMAGES}, r"crop must be >= 0, got \[-1, 0, 0, 0\]"),
        ("grayscale", {}, {}, "grayscale needs uint8 image observations"),
        ("grayscale", {}, {"observation_space": Box(0, 255, (4, 4, 1), np.uint8)}, "of 3 channels, got 1"),
        ("resize", {"size": [4, 4]}, {}, "resize needs uint8 image observations"),
        ("resize", {"size": [0, 4]}, {"observation_space": IMAGES}, r"resize must be >= 1, got \[0, 4\]"),
        (
            "resize",
            {"size": [4, "9"]},
            {"observation_space": IMAGES},
            "must be a list of 2 whole numbers or none",
        ),
        ("resize", {"size": [4]}, {"observation_space": IMAGES}, r"resize must be a list of 2 .*, got \[4\]"),
        (
            "resize",
            {"size": [9, 4]},
            {"observation_space": IMAGES},
            r"got \[9, 4\] for images of \[8, 6\]",
        ),
        ("scale", {}, {}, "scale needs uint8 observations"),
        ("atari_42", {}, {"observation_space": IMAGES}, r"atari_42 needs Atari's screens of \(210, 160, 3\), got \(8"),
        ("running_normalization", {}, {"observation_space": IMAGES}, "running_normalization needs a Box of floats"),
        ("running_normalization", {"decay": 1.0}, {}, r"decay must be in \[0, 1\), got 1.0"),
        ("running_normalization", {"decay": "1"}, {}, "decay must be a number, got '1'"),
        ("one_hot", {}, {}, "one_hot needs Discrete observations"),
        ("settle", {"num_steps": -1}, {}, r"settle_steps must be in \[0, 100000\], got -1"),
        (
            "settle",
            {"num_steps": 1},
            {"action_space": Discrete(3)},
            "settle_steps needs Box or MultiBinary actions that",
        ),
        ("settle", {"num_steps": 1}, {"action_space": Box(1.0, 2.0)}, "settle_steps needs .* that can be 0, got Box"),
        ("settle", {"num_steps": 1}, {"action_space": MultiDiscrete([2])}, "settle_steps needs .* got MultiDiscrete"),
        ("channels_last", {}, {}, "channels_last needs uint8 image observations"),
        ("flatten_action", {}, {"action_space": MultiBinary(2)}, "flatten_action needs a Box action space of floats"),
        ("choose_action", {}, {}, r"choose_action needs actions of bounded integers, got Box\(-1.0"),
        (
            "choose_action",
            {},
            {"action_space": Box(-np.inf, 3, (1,), np.int64)},
            "bounded integers, got Box.*offer these with a gymnasium.ActionWrapper .*--gymnasium_wrappers",
        ),
        (
            "choose_action",
            {},
            {"action_space": Box(0, 2**15, (1,), np.int32)},
            "at most 32768 values in total, but actions Box.* have 32769; offer fewer with a gymnasium.ActionWrapper",
        ),
        ("choose_action", {}, {"action_space": Discrete(2**40, start=1)}, "have 1099511627776; offer fewer"),
        ("fire_reset", {}, {}, "fire_reset, for Atari, needs Discrete actions, of which 1 is FIRE, got Box"),
        ("fire_reset", {}, {"action_space": Discrete(1)}, "of which 1 is FIRE, got Discrete"),
    ],
)
def test_refuses_bad_input_in_one_line(stem, settings, script, message):
    with pytest.raises(ValueError, match=message) as error:
        build(stem, settings, script)
    assert "\n" not in str(error.value)
