"""Arrays between simulators in Python and the toolkit: numbers that do not fit, and actions that are changed."""

import gymnasium
import numpy as np
import pytest
from gymnasium.spaces import Box

from hebbes.environments.gymnasium_env import GymnasiumEnv
from hebbes.environments.step_results import stack_observations


@pytest.mark.parametrize("value", [[300, 0], [0, -1], [2.5, 256.0]])
def test_observations_that_would_wrap_around_are_refused(value):
    space = Box(0, 255, (2,), np.uint8)
    with pytest.raises(ValueError, match="observation has numbers that uint8 does not hold"):
        stack_observations("observation", [np.array(value)], space)
    assert stack_observations("observation", [np.array([255.0, 0.0])], space).tolist() == [[255, 0]]


class Presses(gymnasium.Env):
    """Changes its action in place."""

    observation_space = action_space = Box(-1.0, 1.0, (2,), np.float32)

    def reset(self, *, seed=None, options=None):
        return np.zeros(2, np.float32), {}

    def step(self, action):
        action += 0.5
        return np.zeros(2, np.float32), 0.0, False, False, {}


def test_a_simulator_that_changes_its_action_changes_no_array_of_the_caller():
    if "Presses-v0" not in gymnasium.registry:
        gymnasium.register("Presses-v0", entry_point=Presses)
    env, actions = GymnasiumEnv("Presses-v0", [1, 1], {}), np.zeros((2, 2), np.float32)
    env.start(0)
    env.step(actions, np.arange(2))
    assert not actions.any()


class SharesOneArray(Presses):
    """All simulators of the process write their observation, the number of their env steps, into one array."""

    observation = np.zeros(2, np.float32)

    def reset(self, *, seed=None, options=None):
        self.env_steps = seed % 1000
        return self.step(None)[0], {}

    def step(self, action):
        self.env_steps += 1
        self.observation[:] = self.env_steps
        return self.observation, 0.0, False, False, {}


def test_simulators_that_share_an_array_observe_what_is_theirs():
    if "SharesOneArray-v0" not in gymnasium.registry:
        gymnasium.register("SharesOneArray-v0", entry_point=SharesOneArray)
    env = GymnasiumEnv("SharesOneArray-v0", [1, 2, 3], {})
    first = env.start(0)
    assert len({*first[:, 0]}) == 3
    found = env.step(np.zeros((3, 2), np.float32), np.arange(3)).observations
    np.testing.assert_array_equal(found, first + 1)


class Lost(Presses):
    """Cannot be reset."""

    def reset(self, *, seed=None, options=None):
        raise ValueError("bad map")


def test_a_reset_that_raises_is_named():
    if "Lost-v0" not in gymnasium.registry:
        gymnasium.register("Lost-v0", entry_point=Lost)
    with pytest.raises(ValueError, match=r"^environment 'Lost-v0' cannot be started: bad map$"):
        GymnasiumEnv("Lost-v0", [0], {})
