"""Mistakes in a user's class that one act, or one generation, does not show are named in one line."""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from gymnasium.spaces import Box, Discrete

from hebbes.contracts.engine import EngineError
from hebbes.policies.linear import Linear
from hebbes.recording.base import RunLogger
from hebbes.recording.metrics import read_metrics
from hebbes.strategies.openai_es import OpenAIES
from hebbes.training.advice import TrainingError
from hebbes.training.prepare import prepare
from hebbes.training.run import execute
from hebbes.wrappers.base import BatchWrapper
from tests.shape_checks import unchecked
from tests.training.scripted_runs import make_config, make_scripted_config, resume, train


class Centers(Linear):
    def forward(self, weights, inputs):
        outputs = super().forward(weights, inputs)
        return outputs - outputs.mean(axis=0)


class KeepsGradients(Linear):
    def forward(self, weights, inputs):
        return torch.ones(len(inputs), 2, requires_grad=True) * 2


class NormalizesByTheChunk(Linear):
    def forward(self, weights, inputs):
        return super().forward(weights, inputs - inputs.mean(axis=0))


class Transposes(Linear):
    """Returns (outputs, members), which two members of two outputs do not show."""

    def forward(self, weights, inputs):
        return super().forward(weights, inputs).T


class _CountsCalls(Linear):
    def is_spoiled(self, inputs):
        """After the first env steps, whose observations are scripted: they count them."""
        return bool((inputs > 2).any())


class RaisesLater(_CountsCalls):
    def forward(self, weights, inputs):
        if self.is_spoiled(inputs):
            raise KeyError("later")
        return super().forward(weights, inputs)


class FewerOutputsLater(_CountsCalls):
    def forward(self, weights, inputs):
        outputs = super().forward(weights, inputs)
        return outputs[:, :1] if self.is_spoiled(inputs) else outputs


class RefusesBuffers(Linear):
    def check_buffers(self, buffers):
        raise ValueError("it needs a buffer")


class GrowsByNone(OpenAIES):
    """Says that it grows, and ignores the number that it is told."""

    grows = True

    def ask(self, generation, num_members=None):
        return super().ask(generation)


class StopsGrowing(OpenAIES):
    """Ignores that number from the second generation on."""

    def ask(self, generation, num_members=None):
        return super().ask(generation, num_members if generation == 0 else None)


class _Wrong:
    """A population whose rows are wrong in another way each."""

    def __init__(self, population, change):
        self._population, self._change = population, change

    def __len__(self):
        return len(self._population)

    def weights(self, ids):
        return self._change(self._population.weights(ids)) if len(ids) > 1 else self._population.weights(ids)


class DoubleRows(OpenAIES):
    def ask(self, generation):
        return _Wrong(super().ask(generation), lambda rows: rows.astype(np.float64))


class FewRows(OpenAIES):
    def ask(self, generation):
        return _Wrong(super().ask(generation), lambda rows: rows[1:])


class NumPyMetrics(OpenAIES):
    def tell(self, population, results):
        return {**super().tell(population, results), "own": np.float32(0.5), "flag": np.bool_(True)}


class LearnsInTheRows(Linear):
    """Its state is the rows themselves, which it changes when it learns."""

    def initial_state(self, weights, rngs, buffers):
        return {"rows": weights}

    def act(self, weights, observations, previous_rewards, state, buffers):
        state["rows"] *= np.float32(0.9)
        return super().act(weights, observations, previous_rewards, None, buffers)


class ListsOfRows(OpenAIES):
    def ask(self, generation):
        return _Wrong(super().ask(generation), list)


class CountsFromOne(BatchWrapper):
    """Its actions are those of no policy."""

    def __init__(self, env):
        super().__init__(env)
        self.action_space = Discrete(2, start=1)

    def step(self, actions, active):
        return super().step(actions - 1, active)


class WithMemory(OpenAIES):
    """What it calls `memory` is not what the memory check asks ours for."""

    @property
    def memory(self):
        return [1, 2]


class WithAnotherMemory(OpenAIES):
    @classmethod
    def memory(cls):
        return 3


class LaterState(OpenAIES):
    """Its state of later generations cannot be loaded."""

    told = False

    def tell(self, population, results):
        self.told = True
        return super().tell(population, results)

    def state_dict(self):
        return {**super().state_dict(), **({"late": np.zeros(1)} if self.told else {})}

    def load_state_dict(self, state):
        if "late" in state:
            raise AttributeError("no late state")
        super().load_state_dict(state)


class KeepsRows(RunLogger):
    """Keeps the rows that it is given."""

    rows = []  # noqa: RUF012  # of all instances

    def write(self, row):
        self.rows.append(dict(row))


class StartsShort(BatchWrapper):
    """From the second episode on, its observations lack a row."""

    def start(self, episode):
        return super().start(episode)[: None if episode == 0 else 1]


class OneNumber(BatchWrapper):
    """Its observations are the first number of the scripted ones, in the shape ()."""

    def __init__(self, env):
        super().__init__(env)
        self.observation_space = Box(-np.inf, np.inf, (), np.float64)

    def start(self, episode):
        return super().start(episode)[:, 0]

    def step(self, actions, active):
        env_step = super().step(actions, active)
        return replace(env_step, observations=env_step.observations[:, 0])


@pytest.mark.parametrize(
    ("policy", "reason"),
    [
        ("Centers", "act must give a member the same outputs alone as among others: does it mix them"),
        ("NormalizesByTheChunk", "act must give a member the same outputs alone as among others: does it mix them"),
        ("Transposes", "act must return floats of shape (3, 2) for 3 members, got float32 of shape (2, 3)"),
        ("KeepsGradients", "act must return floats of shape (3, 2) for 3 members, got "),
        ("RefusesBuffers", "it needs a buffer"),
        ("LearnsInTheRows", "act must not change the weights: a state that changes them needs a copy"),
    ],
)
@unchecked()
def test_a_policy_is_refused(policy, reason, tmp_path):
    name = f"{__name__}:{policy}"
    with pytest.raises(ValueError, match=f"^policy '{name}' cannot be used: {re.escape(reason)}"):
        prepare(make_scripted_config(tmp_path, policy=name))


@pytest.mark.parametrize(
    ("options", "line"),
    [
        (
            {"policy": "RaisesLater"},
            rf"policy '{__name__}:RaisesLater' cannot be used: KeyError: 'later' \({re.escape(__file__)}, line \d+\)",
        ),
        (
            {"policy": "FewerOutputsLater"},
            rf"policy {__name__}:FewerOutputsLater: act must return shape \(\d+, 2\), got \(\d+, 1\)",
        ),
        (
            {"strategy": "DoubleRows"},
            rf"population {__name__}:_Wrong: weights must be float32 .*, got float64 of shape",
        ),
        ({"strategy": "FewRows"}, rf"population {__name__}:_Wrong: weights must be float32 of shape \(\d, 4\), got"),
        (
            {"strategy": "ListsOfRows"},
            rf"population {__name__}:_Wrong: weights must be float32 of shape .*, got a list",
        ),
        ({"wrappers": "StartsShort"}, rf"wrappers '{__name__}:StartsShort' cannot be used: observations must be an"),
    ],
)
@unchecked()
def test_a_later_mistake_is_named(options, line, tmp_path):
    ((option, name),) = options.items()
    value = f"{__name__}:{name}"
    named = {option: (value,) if option == "wrappers" else value}
    (run,) = prepare(make_scripted_config(tmp_path, **named, eval_every=100, test_episodes=0))
    with pytest.raises(EngineError, match=f"^{line}"):
        execute(run)


def test_actions_that_no_policy_chooses_are_refused(tmp_path):
    line = (
        r":CountsFromOne' cannot be used: action_space must be a Discrete that starts at 0, or .*, got Discrete\(2, st"
    )
    with pytest.raises(ValueError, match=line):
        prepare(make_config(environment="CartPole-v1", folder=str(tmp_path), wrappers=(f"{__name__}:CountsFromOne",)))


@pytest.mark.parametrize("name", ["GrowsByNone", "StopsGrowing"])
def test_a_strategy_that_does_not_grow_is_refused_or_ends_the_run(name, tmp_path):
    options = {"num_interactions": 300, "population_size": 4}
    with pytest.raises((ValueError, TrainingError), match="ask must return 8 members and the mean policy, got 5 in al"):
        train(make_scripted_config(tmp_path, strategy=f"{__name__}:{name}", **options))
    assert (tmp_path / "Scripted-v0").exists() == (name == "StopsGrowing")  # which has begun


def test_a_strategys_metrics_are_pythons_numbers_in_loggers(tmp_path):
    KeepsRows.rows.clear()
    options = {"strategy": f"{__name__}:NumPyMetrics", "loggers": (f"{__name__}:KeepsRows",)}
    folder = train(make_scripted_config(tmp_path, **options, generations=2))
    assert [type(value) for row in KeepsRows.rows for name, value in row.items() if name in ("own", "flag")] == [
        float
    ] * 4
    assert read_metrics(Path(folder) / "metrics.csv")["own"].tolist() == [0.5, 0.5]


def test_a_strategy_may_call_something_else_memory(tmp_path):
    train(make_scripted_config(tmp_path, strategy=f"{__name__}:WithMemory", generations=1))
    another = f"{__name__}:WithAnotherMemory"
    with pytest.raises(ValueError, match=f"^strategy '{another}' cannot be used: TypeError: "):
        prepare(make_scripted_config(tmp_path / "another", strategy=another))


def test_a_state_that_a_strategy_cannot_load_is_refused_by_its_name(tmp_path):
    name = f"{__name__}:LaterState"
    folder = train(make_scripted_config(tmp_path, strategy=name, generations=2))
    with pytest.raises(ValueError, match=f"strategy '{name}' cannot be used: AttributeError: no late state"):
        resume(folder, **{"import": ("tests", __name__)})


def test_observations_of_a_single_number_are_normalized(tmp_path):
    options = {"wrappers": (f"{__name__}:OneNumber",), "observation_normalization": True}
    train(make_scripted_config(tmp_path, **options, generations=3))
