"""Options that every method with gradients has. This module does not import PyTorch."""

from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, ClassVar, TypeAlias

import numpy as np
from jaxtyping import Float32

from hebbes.contracts.option import check_options, option
from hebbes.contracts.search_space import LogUniform
from hebbes.contracts.strategy import SearchMemory
from hebbes.execution.engine_options import MAX_THREADS

if TYPE_CHECKING:
    from hebbes.policies.mlp import MLP

Bounds: TypeAlias = tuple[Float32[np.ndarray, " action"], Float32[np.ndarray, " action"]]
"""The lowest and the highest actions, in the environment's units."""

CRITIC_ACTIVATIONS = ("leaky_relu", "relu", "tanh")


@dataclass(frozen=True)
class GradientSettings:
    """Hyperparameters of TD3's gradient steps, which all methods share."""

    replay_slack: ClassVar[float] = 0.0
    """Rows that the replay has in addition, as a share of `replay_size`."""
    members_option: ClassVar[str | None] = None
    """The option that says how many members are evaluated together."""
    start_steps: int = option(
        10_000,
        "env steps before the first gradient step; until then actions are random (td3, asynchronous hybrids), or "
        "evolution goes on alone (cem_rl, p_cem_rl)",
        range=">= 0",
    )
    batch_size: int = option(256, "transitions of a gradient step", range=">= 1")
    learning_rate: float = option(
        1e-3, "learning rate of Adam, for critics and actors", range="> 0", search=LogUniform(0.0001, 0.01)
    )
    critic_hidden_sizes: tuple[int, ...] | None = option(
        None, "units of each hidden layer of the critics (default: those of the actor)", range=">= 1"
    )
    critic_activation: str = option(
        "leaky_relu", "activation of the critics' hidden layers", choices=CRITIC_ACTIVATIONS
    )
    discount: float = option(0.99, "discount factor gamma", range="in [0, 1]")
    target_rate: float = option(
        0.005,
        "tau, the part of the way that the targets move in a step",
        range="in (0, 1]",
        search=LogUniform(0.001, 0.05),
    )
    target_noise: float = option(
        0.2, "standard deviation of the noise on the target actor's actions, in units of half their range", range=">= 0"
    )
    target_noise_clip: float = option(0.5, "bound of that noise, in the same units", range=">= 0")
    replay_size: int = option(
        1_000_000,
        "latest transitions that are kept, in memory of 4 bytes * (2 * observation + action + 2) each",
        range=">= 1",
    )
    gradient_threads: int = option(
        1, "threads of PyTorch; results depend on it in their last bits", range=f"in [1, {MAX_THREADS}]"
    )
    device: str = option(
        "cpu",
        "what takes the gradient steps, on networks and batches in its memory; the same seed gives the same bits only "
        "on cpu",
        choices=("cpu", "cuda"),
        changeable=True,
    )

    def __post_init__(self) -> None:
        check_options(self)

    def compute_critic_sizes(self, policy: "MLP") -> tuple[int, ...]:
        """Numbers of inputs, of the units of each hidden layer, and of outputs of a critic of this actor."""
        hidden_sizes = policy.hidden_sizes if self.critic_hidden_sizes is None else self.critic_hidden_sizes
        return prod(policy.observation_shape) + policy.num_outputs, *hidden_sizes, 1

    def count_members(self) -> int:
        """The largest number of members that are evaluated together."""
        return 1

    def count_actors(self) -> int:
        """The number of actors that are trained."""
        return 1

    def count_actors_at_once(self) -> int:
        """The largest number of actors that take gradient steps at the same time, each on a batch of its own."""
        return self.count_actors()

    def count_worker_jobs(self) -> int:
        """Jobs with gradients that worker processes may do at the same time; 0 if the main process does all."""
        return 0

    def estimate_strategy_memory(self, num_params: int, members: int) -> SearchMemory:
        """The memory of the evolution strategy with so many members."""
        return SearchMemory(0, 0, 0)


def count_row_bytes(observation_size: int, action_size: int) -> int:
    """Bytes of a transition in the replay."""
    return 4 * (2 * observation_size + action_size + 2)


def count_slack(replay_size: int, share: float) -> int:
    """Rows that a replay has in addition to those that it keeps."""
    return int(replay_size * share)
