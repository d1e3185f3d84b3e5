"""Policies, strategies and wrappers that break their contracts, each in a different way."""

from collections import namedtuple
from dataclasses import dataclass, field, replace

import gymnasium
import numpy as np

from hebbes.contracts.policy import Layout
from hebbes.policies.linear import Linear
from hebbes.strategies.openai_es import OpenAIES, OpenAIESSettings
from hebbes.wrappers.base import BatchWrapper


def _raise(*_):
    raise RuntimeError("scripted")


class NoSettings(OpenAIES):
    Settings = None


@dataclass(frozen=True)
class SettingsWithoutHelp:
    population_size: int = 4


class SettingWithoutHelp(OpenAIES):
    Settings = SettingsWithoutHelp


@dataclass(frozen=True)
class SettingsWithoutDefault:
    population_size: int = field(metadata={"help": "members"})


class SettingWithoutDefault(OpenAIES):
    Settings = SettingsWithoutDefault


class LacksMethods:
    Settings = OpenAIESSettings

    def ask(self, generation, num_members=None):
        raise NotImplementedError


class ConstructorRaises(OpenAIES):
    __init__ = _raise


class AsksNothing(OpenAIES):
    def ask(self, generation, num_members=None):
        return None


class AsksNothingLater(OpenAIES):
    def ask(self, generation, num_members=None):
        return super().ask(generation, num_members) if generation < 2 else [1, 2]


class GrowsAnew(OpenAIES):
    def ask(self, generation, num_members=None):
        return super().ask(generation + (num_members is not None), num_members)


class ShortMean(OpenAIES):
    @property
    def mean(self):
        return np.zeros(1, np.float32)


class NoState(OpenAIES):
    def state_dict(self):
        return None


class TellsAsBefore(OpenAIES):
    def tell(self, population, fitness, weighted_noise_sum):
        raise NotImplementedError


class _TellsLater(OpenAIES):
    """Returns correct metrics in the first two generations, then those of `answer`."""

    def tell(self, population, results):
        metrics = super().tell(population, results)
        self._told = getattr(self, "_told", 0) + 1
        return metrics if self._told <= 2 else self.answer(metrics)


class TellsNothing(_TellsLater):
    def answer(self, metrics):
        return None


class TellRaises(_TellsLater):
    answer = _raise


def _add(metrics):
    """A strategy that tells these metrics too, later."""
    return type("Adds", (_TellsLater,), {"answer": lambda self, own: {**own, **metrics}})


TellsText = _add({"sigma": "large"})
TellsAnotherMetric = _add({"another": 1.0})
TellsColumnOfOurs = _add({"generation": 7})
TellsColumnOfTheLoop = _add({"return_mean": 7})
TellsComma = _add({"a,b": 7})
TellsHugeNumber = _add({"sigma": 10**400})


class MeanShrinks(_TellsLater):
    def answer(self, metrics):
        self._mean = self._mean[:-1]
        return metrics


class MeanBecomesList(_TellsLater):
    def answer(self, metrics):
        self._mean = list(self._mean)
        return metrics

    @property
    def mean(self):
        return self._mean if isinstance(self._mean, list) else super().mean


class MeanRaises(_TellsLater):
    def answer(self, metrics):
        del self._mean
        return metrics


class _StateLater(_TellsLater):
    """Has a correct state in the first two generations, then `addition` too."""

    addition = None
    is_spoiled = False

    def answer(self, metrics):
        self.is_spoiled = True
        return metrics

    def state_dict(self):
        return {**super().state_dict(), "own": self.addition} if self.is_spoiled else super().state_dict()


def _keep(value):
    """A strategy that keeps this in its state too, later."""
    return type("Keeps", (_StateLater,), {"addition": value})


StateOfNone = _keep(None)
StateOfSet = _keep({1, 2})
StateOfText = _keep(np.array(["a"]))
StateOfObjects = _keep(np.array([None, {}], dtype=object))
StateOfComplexNumbers = _keep(np.array([1j]))
StateOfLongDoubles = _keep(np.zeros(2, np.longdouble))
StateOfRecords = _keep(np.zeros(2, [("a", "f4")]))
StateOfMasked = _keep(np.ma.masked_array(np.zeros(2), [True, False]))
StateRaises = _keep(property(lambda self: 1 / 0))


class StateOfManyArrays(_StateLater):
    addition = np.zeros(1)

    def state_dict(self):
        return super().state_dict() | ({f"k{k}": np.zeros(1) for k in range(3000)} if self.is_spoiled else {})


class StateIsList(_StateLater):
    def state_dict(self):
        return [1] if self.is_spoiled else super().state_dict()


class NoDataclass:
    observation_shape = num_outputs = layout = check_buffers = property(lambda self: None)
    initial_params = initial_state = act = layout


@dataclass(frozen=True)
class LacksAct:
    observation_shape: tuple
    num_outputs: int
    layout = check_buffers = initial_params = initial_state = None


class PolicyRaises(Linear):
    __post_init__ = _raise


class NoLayout(Linear):
    layout = {"weight": (2, 2)}  # noqa: RUF012


class FloatLayout(Linear):
    layout = Layout({"weight": (2.0, 2)})


class LayoutRaises(Linear):
    layout = property(lambda self: self.misspelt)


class ShortStart(Linear):
    def initial_params(self, rng):
        return np.zeros(3, np.float32)


class StateOfNobody(Linear):
    def initial_state(self, weights, rngs, buffers):
        return {"memory": np.zeros(7)}


class NamedState(Linear):
    def initial_state(self, weights, rngs, buffers):
        return namedtuple("Named", "memory")(np.zeros((len(weights), 7)))


class FewOutputs(Linear):
    def forward(self, weights, inputs):
        return super().forward(weights, inputs)[:, :1]


class ActsMasked(Linear):
    def forward(self, weights, inputs):
        return np.ma.masked_array(super().forward(weights, inputs))


class ReadsRows(Linear):
    def act(self, weights, observations, previous_rewards, state, buffers):
        return np.einsum("moi,mi->mo", weights.reshape(len(weights), 2, 2), observations)


class ActRaises(Linear):
    def forward(self, weights, inputs):
        raise RuntimeError("scripted")


class SeesMoreInTraining(BatchWrapper):
    training_only = True

    def __init__(self, env):
        super().__init__(env)
        self.observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (3,), np.float32)

    def start(self, episode):
        return np.pad(super().start(episode), ((0, 0), (0, 1)))

    def step(self, actions, active):
        stepped = super().step(actions, active)
        return replace(stepped, observations=np.pad(stepped.observations, ((0, 0), (0, 1))))


class WrapperRaises(BatchWrapper):
    __init__ = _raise


class StartRaises(BatchWrapper):
    def start(self, episode):
        raise RuntimeError("scripted")


class StepRaises(BatchWrapper):
    """Raises in its call number `fail_at`, on what the environment returned."""

    def __init__(self, env, fail_at=1):
        super().__init__(env)
        self.fail_at, self.num_calls = fail_at, 0

    def step(self, actions, active):
        stepped = super().step(actions, active)
        self.num_calls += 1
        if self.num_calls == self.fail_at:
            raise ValueError("scripted\nin two lines")
        return stepped


class WrapsNothing(BatchWrapper):
    def __init__(self, env):
        self.env = env


class ByForwarding:
    """A correct wrapper, although its class has none of the methods."""

    def __init__(self, env):
        self._env = env

    def __getattr__(self, name):
        return getattr(self._env, name)


class GymnasiumWrapperRaises(gymnasium.Wrapper):
    __init__ = _raise
