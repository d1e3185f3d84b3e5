"""Spaces: which are supported, how observations with several parts are read, which actions reach a simulator."""

import re
from time import perf_counter

import envpool
import numpy as np
import pytest
from gymnasium.spaces import Box, Dict, Discrete, Graph, OneOf, Sequence, Text, Tuple
from gymnasium.spaces.utils import flatten
from gymnasium.wrappers import FlattenObservation

from hebbes.environments.environment_spec import EnvironmentSpec
from hebbes.environments.make_batch_env import make_batch_env
from hebbes.environments.part_spec import PartSpec
from hebbes.environments.spaces import check_spaces
from hebbes.environments.stepping_guard import derive_episode_seeds
from hebbes.execution.tallies import Tallies
from tests.many_spaces import ACTIONS, ENV_ID, Spaces

FLATTENED = ("dict", "tuple", "nested", "binary", "multi")
BOX = Box(-1, 1, (2,), np.float32)


def make(seeds=(0,), **options):
    return make_batch_env(EnvironmentSpec(ENV_ID, "gymnasium", options), seeds, threads=1, training=False)


@pytest.mark.parametrize("kind", FLATTENED)
def test_observations_of_several_parts_are_flattened_as_gymnasium_does_it(kind):
    env, expected = make([3], observations=kind), FlattenObservation(Spaces(kind))
    first, _ = expected.reset(seed=derive_episode_seeds([3], 2)[0])
    np.testing.assert_array_equal(env.start(2), first[np.newaxis])
    assert env.observation_space == expected.observation_space
    for _ in range(3):
        observations = env.step(np.zeros((1, 2), np.float32), np.array([0])).observations
        np.testing.assert_array_equal(observations, expected.step(np.zeros(2, np.float32))[0][np.newaxis])
        assert observations.dtype == env.observation_space.dtype


def test_the_parts_of_a_dict_lie_in_its_order_and_numbers_are_one_hot():
    env = make(observations="dict")  # speed of four numbers, gear of three values, two lamps
    for episode in range(5):
        (numbers,) = env.start(episode)
        assert sorted(numbers[4:7]) == [0, 0, 1] and set(numbers[7:]) <= {0, 1} and not set(numbers[:4]) & {0, 1}


def list_leaves(tree):
    """The leaves of nested dicts of arrays, in the order of their keys."""
    return [
        leaf
        for key in sorted(tree)
        for leaf in (list_leaves(tree[key]) if isinstance(tree[key], dict) else [tree[key]])
    ]


@pytest.mark.parametrize(
    ("environment", "one_hot"),
    [
        ("HopperStand-v1", {}),
        ("MiniGrid-Empty-5x5-v0", {0: 4}),  # direction, image, mission
        ("PacMan-v1", {5: 28, 6: 31}),  # x and y of the player's location
    ],
)
def test_envpools_dicts_are_flattened_in_the_order_of_their_keys(environment, one_hot):
    """Gymnasium orders plain dicts in the same way. `one_hot`: number of each Discrete leaf -> number of its values."""
    env = make_batch_env(EnvironmentSpec(environment, "envpool"), [4, 5], threads=1, training=False)
    theirs = envpool.make_gymnasium(environment, num_envs=2, num_threads=1, seed=derive_episode_seeds([4, 5], 1))
    batch, _ = theirs.reset()
    leaves = list_leaves(batch)
    for number, count in one_hot.items():
        leaves[number] = np.eye(count)[leaves[number].ravel()]
    np.testing.assert_array_equal(env.start(1), np.concatenate([leaf.reshape(2, -1) for leaf in leaves], axis=1))
    actions = np.zeros((2, *env.action_space.shape), env.action_space.dtype)
    assert env.step(actions, np.arange(2)).observations.shape == (2, *env.observation_space.shape)


def test_envpools_dicts_are_flattened_as_gymnasium_flattens_plain_dicts():
    env = make_batch_env(EnvironmentSpec("HopperStand-v1", "envpool"), [0], threads=1, training=False)
    parts = {name: Box(-np.inf, np.inf, (count,)) for name, count in (("position", 6), ("velocity", 7), ("touch", 2))}
    values = {name: np.full(space.shape, number, np.float32) for number, (name, space) in enumerate(parts.items())}
    by_gymnasium = flatten(Dict(parts), values)
    state = [np.zeros((1, 1))] * 20
    for path, index in env._parts.items():
        state[index] = values[path[0]][np.newaxis]
    np.testing.assert_array_equal(env._read_observations(state), by_gymnasium[np.newaxis])


@pytest.mark.parametrize(
    ("observation", "reason"),
    [
        ({"speed": np.zeros((2, 2)), "gear": 0}, "must have the parts .*lamps.*, got speed, gear"),
        ({"speed": np.zeros((2, 3)), "gear": 0, "lamps": [0, 1]}, r"shape \(2, 3\), not \(2, 2\)"),
        ({"speed": np.zeros((2, 2)), "gear": 0, "lamps": np.array([np.nan, 1])}, "not finite"),
        ({"speed": np.zeros((2, 2)), "gear": 0, "lamps": [0, 256]}, "numbers that int8 does not hold"),
        ({"speed": np.zeros((2, 2)), "gear": 0, "lamps": [0, 2]}, r"not in MultiBinary\(2\)"),
        ({"speed": np.zeros((2, 2)), "gear": -2, "lamps": [0, 1]}, r"not in Discrete\(3"),
        ({"speed": np.full((2, 2), "a"), "gear": 0, "lamps": [0, 1]}, "not of real numbers"),
        (3, "must have the parts .*, got int"),
    ],
)
def test_a_simulator_that_observes_something_else_fails_alone(observation, reason, monkeypatch):
    env = make([0, 1, 2], observations="dict")
    env.start(0)
    monkeypatch.setattr(env._envs[1].unwrapped, "step", lambda action: (observation, 0.0, False, False, {}))
    step = env.step(np.zeros((3, 2), np.float32), np.arange(3))
    assert list(step.faults) == [1] and re.search(reason, step.faults[1])
    assert step.terminated.tolist() == [False, True, False]
    assert env.start(1).shape == (3, 9)


@pytest.mark.parametrize(
    ("space", "named"),
    [
        (Text(4), "Text"),
        (Sequence(BOX), "Sequence"),
        (Graph(BOX, None), "Graph"),
        (OneOf([BOX, BOX]), "OneOf"),
        (Dict(a=Tuple([BOX, Text(4)])), r"Text\(1, 4, .*\) at \['a'\]\[1\]"),
        (Dict({}), "observations of 0 numbers"),
        (Box(-1, 1, (0,)), "observations of 0 numbers"),
        (Discrete(10**9), "observations of 1000000000 numbers"),
    ],
)
def test_observations_that_are_refused_have_a_way_out(space, named):
    with pytest.raises(ValueError, match=f"^environment 'Odd-v0' has .*{named}.*; supported are") as error:
        check_spaces("Odd-v0", space, BOX)
    assert str(error.value).endswith("--gymnasium_wrappers package.module:Class")


@pytest.mark.parametrize("space", [Dict(a=BOX), Tuple([BOX]), Text(3)])
def test_actions_that_are_refused_have_a_way_out(space):
    with pytest.raises(ValueError, match=r"^environment 'Odd-v0' has action space .*; supported are") as error:
        check_spaces("Odd-v0", BOX, space)
    assert str(error.value).endswith("--gymnasium_wrappers package.module:Class")


@pytest.mark.parametrize(
    ("kind", "least", "greatest"),
    [
        ("multi", [0, -1, 7], [1, 1, 10]),
        ("multi_matrix", [[0, 0], [0, 0]], [[1, 2], [3, 1]]),
        ("binary", [0, 0, 0], [1, 1, 1]),
        ("counted", 5, 7),
        ("byte", 0, 2),
        ("whole", [-128, 0], [127, 3]),
    ],
)
def test_whole_numbers_outside_their_range_never_reach_the_simulator(kind, least, greatest):
    env, dtype = make([0], actions=kind), ACTIONS[kind].dtype
    env.start(0)
    for allowed in (least, greatest):
        assert not env.step(np.array([allowed], dtype), np.array([0])).faults
    wide = np.int8 if kind == "whole" else np.int64
    for foreign in (np.array(least, wide) - 1, np.array(greatest, wide) + 1):
        if kind == "whole":
            foreign[0] = 0  # this number may have any value of a byte
        for array in (foreign, foreign.astype(dtype)):
            with pytest.raises(ValueError, match="actions must be in"):
                env.step(array[np.newaxis], np.array([0]))
    with pytest.raises(TypeError):
        env.step(np.array([least], np.float32), np.array([0]))


def test_whole_numbers_outside_their_range_never_reach_envpool():
    env = make_batch_env(EnvironmentSpec("Connector-v2", "envpool"), [0], threads=1, training=False)
    env.start(0)
    for number in (-1, 5):
        with pytest.raises(ValueError, match="actions must be in Box"):
            env.step(np.full((1, 10), number, np.int32), np.array([0]))
    env.step(np.full((1, 10), 4, np.int32), np.array([0]))


@pytest.mark.parametrize("environment", ["Go9x9-v1", "intersection-multi-agent-v0"])
def test_games_of_several_players_are_refused(environment):
    with pytest.raises(ValueError, match=f"'{environment}' is a game of several players"):
        make_batch_env(EnvironmentSpec(environment, "envpool"), [0], threads=1, training=False)


def test_an_observation_of_one_named_part_is_that_part():
    env = make_batch_env(EnvironmentSpec("SpotGetup-v1", "envpool"), [0], threads=1, training=False)
    assert env.start(0).shape == (1, *env.observation_space.shape) == (1, 30)


def test_actions_of_no_axes_are_arrays_to_the_simulator():
    env = make([0, 1], actions="real_number")
    env.start(0)
    assert env.step(np.array([0.25, 0.5], np.float32), np.arange(2)).rewards.tolist() == [0.25, 0.5]


def test_half_precision_is_observed_as_it_is():
    env = make(observations="half")
    assert env.start(0).dtype == np.float16 and isinstance(env.observation_space, Box)


@pytest.mark.parametrize(
    ("actions", "wrappers", "sent", "saturated", "bounded"),
    [
        ("multi", ["choose_action"], np.ones((1, 9)), 0, 0),
        ("whole", ["choose_action"], np.ones((1, 260)), 0, 0),
        ("real_matrix", ["flatten_action", "clip_action"], np.array([[9, 0, -9, 0, 1, 2]]), 3, 6),
    ],
)
def test_only_real_numbers_can_be_saturated(actions, wrappers, sent, saturated, bounded):
    chain = tuple(PartSpec(name) for name in wrappers)
    spec = EnvironmentSpec(ENV_ID, "gymnasium", {"actions": actions}, wrappers=chain)
    env = make_batch_env(spec, [0], threads=1, training=False)
    env.start(0)
    tallies = Tallies(env)
    env.step(sent, np.array([0]))
    tallies.record(sent, perf_counter())
    assert (tallies.sums["saturated_actions"], tallies.sums["bounded_actions"]) == (saturated, bounded)
