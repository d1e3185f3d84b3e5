"""hebbes: `train_static.py` with the preset of the environment, but without evaluations of its own.

It is called as `hebbes.train` calls it, because the policy is needed while it trains. Its files are written as always,
to a folder that is deleted.
"""

import tempfile
from collections.abc import Mapping
from typing import Any

import gymnasium
import numpy as np
from jaxtyping import Int, Shaped

from benchmarks.peers.measure import Act, Keep
from hebbes.contracts.environment import BatchEnv, EnvStep, Space
from hebbes.options.command_line import resolve_config
from hebbes.options.texts import format_options
from hebbes.policies.action_heads import HEADS
from hebbes.recording.console import Console
from hebbes.registry.lookup import find_class
from hebbes.training.config import TrainConfig
from hebbes.training.owners import INCIDENTAL
from hebbes.training.prepare import prepare
from hebbes.training.run import execute
from hebbes.training.run_state import Run

PACKAGES: tuple[str, ...] = ()
ENDLESS = {"generations": 10**9, "max_env_steps": 10**15, "eval_every": 10**9, "test_episodes": 0, "quiet": True}


def find_settings(environment: str) -> Mapping[str, Any]:
    """The options of the method, which the preset sets."""
    return make_config(environment).list_used_options(without=INCIDENTAL)


def make_config(environment: str, **options: Any) -> TrainConfig:
    """The preset, with other options."""
    return resolve_config("static", format_options({"environment": environment, **ENDLESS, **options}))


def train(environment: str, seed: int, cores: int, keep: Keep) -> None:
    """Trains until `keep` raises."""
    env = gymnasium.make(environment)
    with tempfile.TemporaryDirectory() as folder:
        run = prepare(make_config(environment, seed=seed, threads=cores, folder=folder)).prepare(seed)
        act = make_act(run, env)
        keep(0, act)
        execute(run, lambda row: keep(int(row["env_steps"]), act), Console(quiet=True))


class OneObservation:
    """A batch of one sub-environment, which passes its wrappers an observation, and gets the action from them."""

    num_envs, seeds = 1, (0,)

    def __init__(self, env: gymnasium.Env):
        self.observation_space: Space = env.observation_space
        self.action_space: Space = env.action_space
        self.observation, self.action = np.zeros(0), np.zeros(0)

    def start(self, episode: int) -> Shaped[np.ndarray, "envs ..."]:
        """The observation."""
        return self.observation[np.newaxis]

    def step(self, actions: Shaped[np.ndarray, "active ..."], active: Int[np.ndarray, " active"]) -> EnvStep:
        """Takes the action."""
        self.action, ended = actions[0], np.zeros(1, np.bool_)
        return EnvStep(self.observation[np.newaxis], np.zeros(1), ended, ended, {})

    def close(self) -> None:
        """There is nothing to free."""


def make_act(run: Run, env: gymnasium.Env) -> Act:
    """The trainer's present policy in its wrappers, for policies and wrappers without a state, as the presets have."""
    agent, inner = run.task.agent, OneObservation(env)
    wrapped: BatchEnv = inner
    for wrapper in run.task.environment.wrappers:
        wrapped = find_class("wrapper", wrapper.name)(wrapped, **wrapper.kwargs)

    def act(observation: np.ndarray) -> np.ndarray:
        inner.observation, (weights, buffers) = observation, run.trainer.policy
        outputs = agent.policy.act(weights[np.newaxis], wrapped.start(0), np.zeros(1, np.float32), None, buffers)
        wrapped.step(HEADS[agent.action_head](outputs), np.zeros(1, np.int64))
        return inner.action

    return act
