"""Small hybrids for tests, CEM-RL unless another is named: on Pendulum-v1 with short episodes, or scripted."""

from dataclasses import replace

import numpy as np

from hebbes.contracts.engine import Context
from hebbes.contracts.randomness import Purpose, make_generator
from hebbes.contracts.trainer import Progress
from hebbes.environments.environment_spec import EnvironmentSpec
from hebbes.environments.part_spec import PartSpec
from hebbes.execution.chunks import Task
from hebbes.execution.episode import Agent
from hebbes.hybrids.cem_rl import CEMRL
from hebbes.policies.mlp import MLP

LENGTH = 50
SIZES = {"population_size": 4, "rl_population": 2, "batch_size": 8, "critic_hidden_sizes": (8,), "start_steps": 0}
SCRIPTED = EnvironmentSpec(
    "Scripted-v0", "gymnasium", {"truncate_at": 4, "action_weight": 1.0}, imports=("tests.scripted",)
)


def make_pendulum(length):
    """Pendulum-v1 with episodes of so many env steps."""
    short = PartSpec("gymnasium.wrappers:TimeLimit", {"max_episode_steps": length})
    rescaled = PartSpec("rescale_action")
    return EnvironmentSpec("Pendulum-v1", "gymnasium", gymnasium_wrappers=(short,), wrappers=(rescaled,))


def make_task(environment=make_pendulum(LENGTH), seed=5):  # noqa: B008  # it is frozen
    observation, action = ((3,), 1) if environment.environment == "Pendulum-v1" else ((2,), 2)
    policy = MLP(observation, action, hidden_sizes=(8,), activation="tanh", bias=True)
    return Task(Agent(policy, "tanh"), environment, seed)


def build_trainer(kind, task, settings):
    weights = task.agent.policy.initial_params(make_generator(task.seed, Purpose.INITIAL_PARAMS)).astype(np.float32)
    return kind(kind.Settings(**settings), task, weights, {}, None)


def make_trainer(kind=CEMRL, task=None, **changes):
    return build_trainer(kind, task or make_task(), {**SIZES, **changes})


def make_context(generation):
    return Context(Purpose.TRAINING, generation, (generation,), None, None, {}, False)


def advance(trainer, engine, units, progress=Progress()):  # noqa: B008  # it is frozen
    rows = []
    for _ in range(units):
        result = trainer.advance(progress, engine)
        progress = replace(progress, units=progress.units + 1, env_steps=progress.env_steps + result.env_steps)
        rows.append(result.metrics)
    return rows, progress


def assert_same(first, second):
    states = first.get_state(), second.get_state()
    assert states[0].arrays.keys() == states[1].arrays.keys()
    for name, array in states[0].arrays.items():
        assert np.array_equal(array, states[1].arrays[name]), name
    assert states[0].values == states[1].values
    replays = [[each.arrays["rows"] for each in state.segments.values()] for state in states]
    assert all(np.array_equal(a, b) for a, b in zip(*replays, strict=True))


class Spy:
    """An engine that keeps the populations that it evaluates."""

    shares_memory = True

    def __init__(self, engine):
        self._engine, self.populations = engine, []
        self.weighted_noise_sums = engine.weighted_noise_sums
        self.submit, self.collect = engine.submit, engine.collect

    def evaluate(self, population, context, members):
        self.populations.append(population)
        return self._engine.evaluate(population, context, members)
