"""Hybrid: the trainer of an actor by a method of `hebbes.hybrids`, which mixes gradients with evolution."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from math import prod
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from jaxtyping import Float32

from hebbes.contracts.engine import Engine
from hebbes.contracts.environment import Space
from hebbes.contracts.option import check_options, option
from hebbes.contracts.policy import Buffers, Policy
from hebbes.contracts.strategy import SearchMemory
from hebbes.contracts.trainer import Progress, SearchSize, Trainer, TrainerState, UnitResult
from hebbes.hybrids.algorithm import Algorithm
from hebbes.hybrids.core.settings import GradientSettings, count_row_bytes, count_slack
from hebbes.policies.mlp import MLP
from hebbes.registry.lookup import find_class
from hebbes.registry.tables import ALGORITHMS
from hebbes.training.config import TrainConfig

if TYPE_CHECKING:
    from hebbes.execution.chunks import Task

ACTIVATIONS = ("tanh", "relu")
"""Of the actor: those whose gradients `hebbes.hybrids.core.networks` computes."""


@dataclass(frozen=True)
class HybridOptions:
    """Options of the trainer of hybrids."""

    algorithm: str = option("td3", "algorithm by name", choices=tuple(ALGORITHMS))
    policy: str = option("mlp", "the actor's network, whose gradient the algorithms compute", choices=("mlp",))

    def __post_init__(self) -> None:
        check_options(self)


@dataclass(frozen=True, kw_only=True)
class HybridSize(SearchSize):
    """The population, the networks and the replay."""

    settings: GradientSettings
    num_params: int
    trained_params: int
    """Parameters of all networks that have an optimizer."""
    replay_size: int
    row_bytes: int

    def estimate_memory(self) -> SearchMemory:
        """The strategy, and for each trained parameter its value, target, and the two moments of Adam."""
        strategy = self.settings.estimate_strategy_memory(self.num_params)
        return replace(strategy, state=strategy.state + 4 * 4 * self.trained_params)

    def count_segment_bytes(self) -> int:
        """Bytes of the full replay and its slack; 0 if nothing is trained."""
        rows = self.replay_size + count_slack(self.replay_size, self.settings.replay_slack)
        return rows * self.row_bytes if self.settings.count_actors() else 0


class Hybrid(Trainer):
    """Trains an actor with one of the algorithms."""

    Options: ClassVar[type[HybridOptions]] = HybridOptions
    owner = "hybrid"
    method_kind = "algorithm"
    defaults: ClassVar[Mapping[str, Any]] = {
        **{"action_bounds": "rescale", "bias": True, "hidden_sizes": (400, 300), "initialization": "pytorch"},
        **{"max_env_steps": 1_000_000, "eval_every": 5000, "eval_episodes": 10},
    }
    eval_counter = "env_steps"

    def __init__(self, config: TrainConfig, task: "Task", weights: Float32[np.ndarray, " params"], buffers: Buffers):
        """Starts from these weights of the actor."""
        assert isinstance(task.agent.policy, MLP), "HybridOptions allows no other"
        _check_options(config, task.agent.policy)
        self._buffers = buffers
        algorithm = find_class("algorithm", config.choices.method)
        self._algorithm: Algorithm = algorithm(
            config.settings, task, weights, buffers, config.training.max_episode_steps
        )
        self.unit = self._algorithm.unit

    @classmethod
    def check_spaces(cls, config: TrainConfig, observation_space: Space, action_space: Space) -> None:
        """ValueError for actions that are discrete or have no bounds, and for observations that are not vectors."""
        name, environment = f"--algorithm {config.choices.method}", config.environment.id
        space: Any = action_space
        if action_space.dtype is None or action_space.dtype.kind != "f" or not space.is_bounded():
            raise ValueError(
                f"{name} needs actions of real numbers with bounds, but {environment} has {space}; "
                "train_static.py evolves policies for it"
            )
        if len(observation_space.shape or ()) != 1:
            raise ValueError(
                f"{name} needs observations that are vectors, but {environment} has {observation_space}; "
                "train_static.py evolves policies for it"
            )

    @classmethod
    def measure_search(cls, config: TrainConfig, policy: Policy) -> SearchSize:
        """The population, and the replay."""
        assert isinstance(policy, MLP), "HybridOptions allows no other"
        settings, num_observed = config.settings, prod(policy.observation_shape)
        num_params = policy.layout.num_params
        critics = (num_observed + policy.num_outputs, *settings.choose_critic_sizes(policy.hidden_sizes), 1)
        critic_params = sum((num_inputs + 1) * num_outputs for num_inputs, num_outputs in pairwise(critics))
        return HybridSize(
            population_size=settings.count_members(),
            options={"replay_size": ("replay_size", 1)},
            settings=settings,
            num_params=num_params,
            trained_params=settings.count_actors() * num_params + 2 * critic_params,
            replay_size=settings.replay_size,
            row_bytes=count_row_bytes(num_observed, policy.num_outputs),
        )

    @property
    def policy(self) -> tuple[Float32[np.ndarray, " params"], Buffers]:
        """The algorithm's actor."""
        return self._algorithm.actor, self._buffers

    def advance(self, progress: Progress, engine: Engine) -> UnitResult:
        """Does the algorithm's next unit."""
        return self._algorithm.advance(progress, engine)

    def close(self) -> None:
        """Frees the algorithm's simulators."""
        self._algorithm.close()

    def get_state(self) -> TrainerState:
        """The algorithm's state."""
        return self._algorithm.get_state()

    def set_state(self, state: TrainerState) -> None:
        """Continues from what `get_state` returned."""
        self._algorithm.set_state(state)


def _check_options(config: TrainConfig, policy: MLP) -> None:
    """ValueError for options that the gradients do not follow, and for an engine out of reach of shared memory."""
    if config.engine.engine == "ray" and find_class("algorithm", config.choices.method).shares_memory:
        raise ValueError(
            f"--algorithm {config.choices.method} cannot use --engine ray, because its jobs read the replay in the "
            "memory of the training process; use --engine workers"
        )
    for name, value, allowed in (
        ("action_bounds", config.environment.action_bounds, ("rescale",)),
        ("bias", policy.bias, (True,)),
        ("activation", policy.activation, ACTIVATIONS),
        ("morphologies", len(config.environment.morphologies), (1,)),
    ):
        if value not in allowed:
            choices = " or ".join(map(str, allowed))
            raise ValueError(f"{name} must be {choices} with --algorithm {config.choices.method}, got {value}")
