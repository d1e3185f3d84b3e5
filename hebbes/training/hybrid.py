"""Hybrid: the trainer of an actor by a method of `hebbes.hybrids`, which mixes gradients with evolution."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from importlib.util import find_spec
from itertools import pairwise
from math import prod
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from jaxtyping import Float32

from hebbes.contracts.engine import Engine
from hebbes.contracts.environment import Space
from hebbes.contracts.errors import close_part
from hebbes.contracts.option import check_options, option
from hebbes.contracts.policy import Buffers, Policy
from hebbes.contracts.strategy import SearchMemory
from hebbes.contracts.trainer import Progress, SearchSize, Trainer, TrainerState, UnitResult
from hebbes.hybrids import core
from hebbes.hybrids.algorithm import Algorithm
from hebbes.hybrids.core.settings import GradientSettings, count_row_bytes, count_slack
from hebbes.policies.mlp import MLP
from hebbes.registry.lookup import find_class
from hebbes.registry.tables import ALGORITHMS
from hebbes.registry.users_classes import convert_errors, make_instance
from hebbes.training.config import TrainConfig
from hebbes.training.contract_checks import call_part, check_finite_row
from hebbes.training.printed_commands import format_command

if TYPE_CHECKING:
    from hebbes.execution.chunks import Task

ACTIVATIONS = ("tanh", "relu")
"""Of the actor: those whose gradients `hebbes.hybrids.core.networks` computes."""

TORCH_BYTES = 140_000_000
"""Bytes of its own that a process has after the import of PyTorch and a gradient step; 137 to 141 MB were measured."""


@dataclass(frozen=True)
class HybridOptions:
    """Options of the trainer of hybrids."""

    algorithm: str = option("td3", "algorithm by name, or package.module:Class")
    policy: str = option("mlp", "the actor's network, whose gradient the algorithms compute", choices=("mlp",))

    def __post_init__(self) -> None:
        check_options(self)
        found = find_class("algorithm", self.algorithm)
        settings, unit = getattr(found, "Settings", None), getattr(found, "unit", None)
        has_settings = isinstance(settings, type) and issubclass(settings, GradientSettings)
        if not (issubclass(found, Algorithm) and has_settings and isinstance(unit, str)):
            raise ValueError(
                f"algorithm {self.algorithm!r} is not an algorithm: it must inherit from {Algorithm.__module__}."
                f"{Algorithm.__qualname__}, its Settings from {GradientSettings.__module__}.GradientSettings, and its "
                "unit must name what it counts"
            )


@dataclass(frozen=True, kw_only=True)
class HybridSize(SearchSize):
    """The population, the networks, the replay and the batches."""

    settings: GradientSettings
    actor_sizes: tuple[int, ...]
    """Numbers of inputs, of the units of each hidden layer, and of outputs of an actor."""
    critic_sizes: tuple[int, ...]
    """The same of a critic."""
    replay_size: int
    batch_size: int
    row_bytes: int

    @property
    def advice(self) -> str:
        """Names the networks."""
        return "smaller networks (hidden_sizes, critic_hidden_sizes) need less"

    def estimate_memory(self) -> SearchMemory:
        """The strategy, for each trained parameter its value, target, and the two moments of Adam, and the batches."""
        actor, critic = (sum((a + 1) * b for a, b in pairwise(each)) for each in (self.actor_sizes, self.critic_sizes))
        trained = min(self.settings.count_actors(), self.population_size) * actor + 2 * critic
        strategy = self.settings.estimate_strategy_memory(actor, self.population_size)
        return replace(
            strategy,
            state=strategy.state + 4 * 4 * trained,
            update=max(strategy.update, self.batch_size * self._count_transition_bytes()),
        )

    def _count_transition_bytes(self) -> int:
        """Bytes of a transition of a batch: the outputs of all layers, and their gradients."""
        actor, critic = sum(self.actor_sizes), sum(self.critic_sizes)
        actors = min(self.settings.count_actors_at_once(), self.population_size)
        in_actors = actors * (self.row_bytes + 8 * (actor + critic))
        return in_actors + 2 * 12 * critic if self.settings.count_actors() else 0

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
        **{"max_env_steps": 1_000_000, "eval_every": 5000, "eval_episodes": 10, "print_every": 5000},
    }
    eval_counter = "env_steps"

    def __init__(self, config: TrainConfig, task: "Task", weights: Float32[np.ndarray, " params"], buffers: Buffers):
        """Starts from these weights of the actor."""
        assert isinstance(task.agent.policy, MLP), "HybridOptions allows no other"
        _check_options(config, task.agent.policy)
        core.device.check_device(config.settings.device)
        self._buffers = buffers
        name, max_episode_steps = config.choices.method, config.training.max_episode_steps
        arguments = config.settings, task, weights, buffers, max_episode_steps
        self._algorithm: Algorithm = make_instance("algorithm", name, find_class("algorithm", name), *arguments)
        self._name, self._layout, self.unit = name, task.agent.policy.layout, self._algorithm.unit
        with convert_errors("algorithm", name):
            check_finite_row("actor", self._algorithm.actor, self._layout)

    def __str__(self) -> str:
        return f"algorithm {self._name!r}"

    @classmethod
    def check_spaces(cls, config: TrainConfig, observation_space: Space, action_space: Space) -> None:
        """ValueError without torch, for discrete or unbounded actions, and for observations that are not vectors."""
        name, environment = f"--algorithm {config.choices.method}", config.environment.id
        instead = f"{format_command('train_static')} evolves policies for it"
        if find_spec("torch") is None:
            raise ValueError(f"{name} needs the package torch, which is not installed: pip install torch")
        if not _has_range(action_space):
            raise ValueError(
                f"{name} needs actions of real numbers with bounds, but {environment} has {action_space}; {instead}"
            )
        if len(observation_space.shape or ()) != 1:
            raise ValueError(
                f"{name} needs observations that are vectors, but {environment} has {observation_space}; {instead}"
            )

    @classmethod
    def measure_search(cls, config: TrainConfig, policy: Policy) -> SearchSize:
        """The population, the networks, the replay and the batches."""
        assert isinstance(policy, MLP), "HybridOptions allows no other"
        core.device  # noqa: B018  # imports PyTorch, which takes memory before it is measured what is free
        with convert_errors("algorithm", config.choices.method):
            settings, num_observed = config.settings, prod(policy.observation_shape)
            members = {settings.members_option: ("population_size", 1)} if settings.members_option else {}
            return HybridSize(
                population_size=settings.count_members(),
                worker_jobs=settings.count_worker_jobs(),
                worker_bytes=TORCH_BYTES,
                options={**members, "replay_size": ("replay_size", 1), "batch_size": ("batch_size", 1)},
                settings=settings,
                actor_sizes=(num_observed, *policy.hidden_sizes, policy.num_outputs),
                critic_sizes=settings.compute_critic_sizes(policy),
                replay_size=settings.replay_size,
                batch_size=settings.batch_size,
                row_bytes=count_row_bytes(num_observed, policy.num_outputs),
            )

    @property
    def policy(self) -> tuple[Float32[np.ndarray, " params"], Buffers]:
        """The algorithm's actor."""
        check = partial(check_finite_row, "actor", layout=self._layout)
        return call_part(self, "actor", lambda: self._algorithm.actor, check), self._buffers

    def advance(self, progress: Progress, engine: Engine) -> UnitResult:
        """Does the algorithm's next unit."""
        return self._algorithm.advance(progress, engine)

    def close(self) -> None:
        """Frees the algorithm's simulators, also if one of a user's fails to."""
        close_part(str(self), self._algorithm)

    def get_state(self) -> TrainerState:
        """The algorithm's state."""
        return self._algorithm.get_state()

    def set_state(self, state: TrainerState) -> None:
        """Continues from what `get_state` returned."""
        with convert_errors("algorithm", self._name):
            self._algorithm.set_state(state)


def _has_range(action_space: Any) -> bool:
    """Whether actions are real numbers with bounds, whose differences are finite in float32."""
    if action_space.dtype is None or action_space.dtype.kind != "f":
        return False
    with np.errstate(over="ignore", invalid="ignore"):
        low, high = (bound.astype(np.float32) for bound in (action_space.low, action_space.high))
        return bool(np.isfinite(high - low).all())


def _check_options(config: TrainConfig, policy: MLP) -> None:
    """ValueError for options that gradient steps cannot follow, or with which none would be taken or timed right."""
    for name, value, allowed in (
        ("action_bounds", config.environment.action_bounds, ("rescale",)),
        ("bias", policy.bias, (True,)),
        ("activation", policy.activation, ACTIVATIONS),
        ("morphologies", len(config.environment.morphologies), (1,)),
    ):
        if value not in allowed:
            choices = " or ".join(map(str, allowed))
            raise ValueError(f"{name} must be {choices} with --algorithm {config.choices.method}, got {value}")
    if config.engine.episode_timeout is not None and not find_class("algorithm", config.choices.method).limits_time:
        limited = [name for name in ALGORITHMS if find_class("algorithm", name).limits_time]
        raise ValueError(
            f"episode_timeout does not reach the training episodes of --algorithm {config.choices.method}; "
            f"leave it out, or train with --algorithm {' or '.join(limited)}"
        )
    settings, budget = config.settings, config.training.max_env_steps
    if settings.device == "cuda" and getattr(settings, "completion_log", None) is not None:
        raise ValueError("device must be cpu with completion_log, because a GPU does not repeat the bits, got cuda")
    if settings.device == "cuda" and config.engine.engine == "ray" and settings.count_worker_jobs():
        raise ValueError("device must be cpu with --engine ray, whose nodes are not asked for a GPU, got cuda")
    if settings.count_actors() and budget is not None and settings.start_steps >= budget:
        raise ValueError(
            f"start_steps must be less than max_env_steps {budget}, because nothing is trained by gradients before, "
            f"got {settings.start_steps}"
        )
