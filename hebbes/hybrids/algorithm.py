"""Algorithm: a method that mixes gradients with evolution, as the trainer of hybrids advances it."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from jaxtyping import Float32

from hebbes.contracts.engine import Engine
from hebbes.contracts.trainer import Progress, TrainerState, UnitResult
from hebbes.hybrids.core.settings import GradientSettings

if TYPE_CHECKING:
    from hebbes.execution.chunks import Task


class Algorithm(ABC):
    """Searches for an actor. Its module does not import PyTorch, because its options are read first."""

    Settings: ClassVar[type[GradientSettings]]
    defaults: ClassVar[Mapping[str, Any]] = {}
    """Options of other parts -> the default that they have with this algorithm."""
    limits_time: ClassVar[bool] = False
    """Whether the engine plays all episodes of the training, and so can keep the option `episode_timeout`."""
    unit: ClassVar[str]
    """What a unit is called: an episode, a generation, an individual."""

    @abstractmethod
    def __init__(
        self,
        settings: Any,
        task: "Task",
        weights: Float32[np.ndarray, " params"],
        buffers: Mapping[str, np.ndarray],
        max_episode_steps: int | None,
    ) -> None:
        """Starts with these weights of the actor. ValueError if the environment does not suit the algorithm."""

    @property
    @abstractmethod
    def actor(self) -> Float32[np.ndarray, " params"]:
        """Weights of the actor that would be handed out now."""

    @abstractmethod
    def advance(self, progress: Progress, engine: Engine) -> UnitResult:
        """Does the next unit; FloatingPointError if the critics have diverged, AllFailedError as for a `Trainer`."""

    @abstractmethod
    def get_state(self) -> TrainerState:
        """The state between two units."""

    @abstractmethod
    def set_state(self, state: TrainerState) -> None:
        """Continues from what `get_state` returned."""

    def close(self) -> None:  # noqa: B027  # most hold nothing
        """Frees simulators of its own."""
