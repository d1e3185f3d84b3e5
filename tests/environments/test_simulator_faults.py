"""Exceptions and invalid results of one simulator on the Gymnasium back end, while the others go on."""

import warnings

import gymnasium
import numpy as np
import pytest
from gymnasium.spaces import Box, Discrete

import tests.scripted
from hebbes.contracts import errors
from hebbes.environments.gymnasium_env import GymnasiumEnv

BRAVE, TIMID = [0.5, 0.5], [-0.5, -0.5]


class Rubbish(gymnasium.Env):
    """Observes two zeros. With action 1, `step` returns something else: `returned`, or one value replaced.

    `at`: index of the value that is replaced; `value`: a function without arguments that makes the replacement.
    """

    def __init__(self, at=None, value=None, returned=None, observation_space=None):
        self.observation_space = observation_space or Box(-1.0, 1.0, (2,), np.float32)
        self.action_space = Discrete(2)
        self._at, self._value, self._returned = at, value, returned

    def reset(self, *, seed=None, options=None):
        return np.zeros(self.observation_space.shape, self.observation_space.dtype), {}

    def step(self, action):
        results = [self.reset()[0], 1.0, False, False, {}]
        if action and self._at is not None:
            results[self._at] = self._value()
        return self._returned if action and self._at is None else tuple(results)


class Loud(gymnasium.Wrapper):
    """A user's wrapper with a state: adds the number of its own env steps to the reward."""

    steps = 0

    def step(self, action):
        self.steps += 1
        observation, reward, *rest = self.env.step(action)
        return observation, reward + self.steps, *rest


@pytest.fixture(autouse=True)
def _forget_shown_errors(monkeypatch):
    monkeypatch.setattr(errors, "_shown", set())


def make_scripted(seeds, wrappers=(), **script):
    return GymnasiumEnv("Scripted-v0", seeds, script, wrappers=wrappers)


def make_rubbish(num_envs=2, **options):
    if "Rubbish-v0" not in gymnasium.registry:
        gymnasium.register("Rubbish-v0", entry_point=Rubbish)
    return GymnasiumEnv("Rubbish-v0", [0] * num_envs, options)


def step_all(env, actions):
    return env.step(np.array(actions), np.arange(len(actions)))


def test_only_the_simulator_that_raised_has_failed():
    env = make_scripted([1, 2, 3], raise_at=2, only_above=0.5, truncate_at=4)
    first = env.start(0)
    step_all(env, [TIMID, BRAVE, TIMID])
    step = step_all(env, [TIMID, BRAVE, TIMID])
    assert step.faults == {1: "RuntimeError: scripted failure at env step 2"}
    assert np.isnan(step.rewards).tolist() == step.terminated.tolist() == [False, True, False]
    assert step.observations[[0, 2], 1].tolist() == [2, 2]
    assert env.observation_space.contains(step.observations[1])
    assert step.observations[[0, 2], 0].tolist() == first[[0, 2], 0].tolist()
    with pytest.raises(ValueError, match=r"has ended or not begun: \[1\]"):
        step_all(env, [TIMID] * 3)
    going = env.step(np.array([TIMID, TIMID]), np.array([0, 2]))
    assert going.rewards.tolist() == [1, 1] and not going.faults


def test_a_simulator_that_failed_is_replaced_for_the_next_episode():
    broken, fresh = (make_scripted([1, 2], [(Loud, {})], raise_at=3, only_above=0.5) for _ in range(2))
    broken.start(0)
    for _ in range(3):
        step_all(broken, [TIMID, BRAVE])
    assert broken.start(1).tobytes() == fresh.start(1).tobytes()
    rewards = [step_all(env, [TIMID, TIMID]).rewards.tolist() for env in (broken, fresh)]
    assert rewards == [[5, 2], [2, 2]]  # old simulator 0 has taken three more env steps; simulator 1 is new


def test_the_first_traceback_is_shown_and_no_other(capsys):
    env = make_scripted([1], raise_at=1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for episode in range(3):
            env.start(episode)
            step_all(env, [BRAVE])
    first, *lines = capsys.readouterr().err.splitlines()
    assert first == "Scripted-v0 failed in an env step; from here on this is counted, not shown:"
    assert lines.count("RuntimeError: scripted failure at env step 1") == 2  # the short reason and the traceback's end
    assert any('scripted.py", line' in line for line in lines)


def test_an_exception_without_a_text_is_a_fault(monkeypatch):
    class Mute(Exception):
        def __str__(self):
            raise self

    def fail(self, action):
        raise Mute

    env = make_scripted([1])
    env.start(0)
    monkeypatch.setattr(tests.scripted.ScriptedGymnasiumEnv, "step", fail)
    assert step_all(env, [TIMID]).faults == {0: "Mute: <its text cannot be had>"}


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
def test_what_ends_the_program_is_no_fault(error, monkeypatch):
    def leave(self, action):
        raise error

    env = make_scripted([1])
    env.start(0)
    monkeypatch.setattr(tests.scripted.ScriptedGymnasiumEnv, "step", leave)
    with pytest.raises(error):
        step_all(env, [TIMID])


@pytest.mark.parametrize("place", ["constructor", "reset"])
def test_exceptions_in_a_constructor_or_a_reset_are_raised(place):
    with pytest.raises((ValueError, RuntimeError), match=f"scripted failure in {place}"):
        make_scripted([1], raise_in=place)


def test_close_may_raise(capsys):
    make_scripted([1, 2], raise_in="close").close()
    assert capsys.readouterr().err.startswith("an environment failed to close; ")


def make_masked_array():
    return np.ma.masked_array([0.25, 0.5], mask=[True, False])


@pytest.mark.parametrize(
    ("at", "value", "reason"),
    [
        (0, lambda: np.zeros(5), r"ValueError: observation has shape \(5,\), not \(2,\)"),
        (0, lambda: 0.5, r"ValueError: observation has shape \(\), not \(2,\)"),
        (0, lambda: None, "TypeError: observation is not of real numbers but of dtype object"),
        (0, lambda: {"a": 1}, "TypeError: observation is not of real numbers but of dtype object"),
        (0, lambda: np.array([1, 2], object), "TypeError: observation is not of real numbers but of dtype object"),
        (0, lambda: np.zeros(2, np.complex64), "TypeError: observation is not of real numbers but of dtype complex"),
        (0, lambda: [[1.0], [1.0, 2.0]], "ValueError: .*inhomogeneous"),
        (1, lambda: None, "TypeError: reward is not of real numbers but of dtype object"),
        (1, lambda: 1j, "TypeError: reward is not of real numbers but of dtype complex128"),
        (1, lambda: np.complex128(1), "TypeError: reward is not of real numbers but of dtype complex128"),
        (1, lambda: "1", "TypeError: reward is not of real numbers but of dtype <U1"),
        (1, lambda: 10**400, "TypeError: reward is not of real numbers but of dtype object"),
        (1, lambda: np.ones(1), r"ValueError: reward has shape \(1,\), not \(\)"),
        (2, lambda: None, "TypeError: terminated is not of real numbers"),
        (3, lambda: np.zeros(2, bool), r"ValueError: truncated has shape \(2,\), not \(\)"),
        (2, lambda: np.nan, "ValueError: terminated is not finite"),
    ],
)
@pytest.mark.parametrize("num_envs", [1, 2])
def test_only_the_simulator_that_returned_rubbish_has_failed(at, value, reason, num_envs):
    env = make_rubbish(num_envs, at=at, value=value)
    env.start(0)
    step = step_all(env, [1, 0][:num_envs])
    assert list(step.faults) == [0]
    with pytest.raises(AssertionError, match=reason):
        raise AssertionError(step.faults[0])
    assert step.terminated.tolist() == [True, False][:num_envs]
    assert step.rewards.tolist() == pytest.approx([np.nan, 1.0][:num_envs], nan_ok=True)


@pytest.mark.parametrize("returned", [None, (1, 2, 3, 4), 7])
def test_a_step_without_five_values_is_a_fault(returned):
    env = make_rubbish(returned=returned)
    env.start(0)
    step = step_all(env, [1, 0])
    assert step.faults == {0: "ValueError: step did not return a tuple of five"}
    assert step.terminated.tolist() == [True, False]


@pytest.mark.parametrize(
    ("at", "value", "expected"),
    [
        (1, lambda: 3, 3.0),
        (1, lambda: True, 1.0),
        (1, lambda: np.array(2.5), 2.5),
        (1, lambda: np.float32(0.1), np.float64(np.float32(0.1))),
        (0, lambda: [1, 2], [1.0, 2.0]),
        (0, lambda: np.array([True, False]), [1.0, 0.0]),
        (0, make_masked_array, [0.25, 0.5]),
        (2, lambda: np.bool_(True), True),
        (3, lambda: 1, True),
    ],
)
def test_numbers_of_other_types_are_accepted(at, value, expected):
    env = make_rubbish(at=at, value=value)
    env.start(0)
    step = step_all(env, [1, 0])
    found = (step.observations, step.rewards, step.terminated, step.truncated)[at]
    assert not step.faults
    assert found[0].tolist() == expected
    assert found.dtype == (np.float32, np.float64, np.bool_, np.bool_)[at]


def test_a_number_that_no_integer_holds_is_a_fault():
    env = make_rubbish(at=0, value=lambda: np.full(2, np.nan), observation_space=Box(0, 255, (2,), np.uint8))
    env.start(0)
    assert step_all(env, [1, 0]).faults == {0: "ValueError: observation is not finite"}


@pytest.mark.parametrize("returned", [5, -1, 2])
def test_a_discrete_observation_out_of_its_range_is_a_fault(returned):
    env = make_rubbish(at=0, value=lambda: returned, observation_space=Discrete(2))
    env.start(0)
    step = step_all(env, [1, 0])
    assert step.faults == {0: "ValueError: observation is not in Discrete(2)"}
    assert step.terminated.tolist() == [True, False]


def test_a_reset_that_returns_another_shape_is_refused():
    class Growing(Rubbish):
        def reset(self, *, seed=None, options=None):
            return np.zeros(3), {}

    if "Growing-v0" not in gymnasium.registry:
        gymnasium.register("Growing-v0", entry_point=Growing)
    with pytest.raises(
        ValueError, match=r"'Growing-v0' cannot be started: observation of reset has shape \(3,\), not \(2,\)"
    ):
        GymnasiumEnv("Growing-v0", [0], {})


class Undrawable(Rubbish):
    """Cannot be rendered."""

    metadata = {"render_modes": ["rgb_array"]}  # noqa: RUF012

    def __init__(self, render_mode=None):
        super().__init__()
        self.render_mode = render_mode

    def render(self):
        raise RuntimeError("no OpenGL here\nat all")


@pytest.mark.parametrize(
    ("environment", "mode", "has"),
    [
        ("CartPole-v1", "ansi", "human, rgb_array"),
        ("Rubbish-v0", "human", "none"),
        ("Pong-v5", "gif", "human, rgb_array"),
    ],
)
def test_a_render_mode_that_an_environment_lacks_is_refused_with_those_that_it_has(environment, mode, has, monkeypatch):
    monkeypatch.setitem(gymnasium.registry, "Rubbish-v0", gymnasium.envs.registration.EnvSpec("Rubbish-v0", Rubbish))
    line = f"environment '{environment}' has no render mode '{mode}' in its metadata; it has {has}"
    with pytest.raises(ValueError) as refused:
        GymnasiumEnv(environment, [0], {}, render_mode=mode)
    assert str(refused.value) == line


class Late(Undrawable):
    """Says only when it is made how it can be rendered."""

    metadata = Rubbish.metadata

    def __init__(self, render_mode=None):
        super().__init__(render_mode)
        self.metadata = Undrawable.metadata


def test_the_metadata_of_the_environment_count_more_than_those_of_its_class(monkeypatch):
    monkeypatch.setitem(gymnasium.registry, "Late-v0", gymnasium.envs.registration.EnvSpec("Late-v0", Late))
    env = GymnasiumEnv("Late-v0", [0], {}, render_mode="rgb_array")
    assert env.metadata == Undrawable.metadata
    env.close()
    spec = gymnasium.envs.registration.EnvSpec("Absent-v0", "no_such_module:Absent")
    monkeypatch.setitem(gymnasium.registry, "Absent-v0", spec)
    with pytest.raises(ValueError, match="'Absent-v0' cannot be made: ModuleNotFoundError: "):
        GymnasiumEnv("Absent-v0", [0], {}, render_mode="rgb_array")


def test_a_simulator_that_cannot_be_rendered_is_an_error_of_one_line(monkeypatch):
    monkeypatch.setitem(
        gymnasium.registry, "Undrawable-v0", gymnasium.envs.registration.EnvSpec("Undrawable-v0", Undrawable)
    )
    env = GymnasiumEnv("Undrawable-v0", [0], {}, render_mode="rgb_array")
    with pytest.raises(OSError, match=r"^Undrawable-v0 cannot be rendered: RuntimeError: no OpenGL here$"):
        env.render()
