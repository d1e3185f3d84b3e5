"""Run: everything that a run is made of, and copies of its present state."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import nan
from pathlib import Path

import numpy as np

from hebbes.contracts.engine import Engine
from hebbes.contracts.policy import Buffers
from hebbes.contracts.strategy import Strategy
from hebbes.execution.chunks import Task
from hebbes.execution.observation_moments import make_normalization_buffers
from hebbes.files.checkpoint import Checkpoint, Progress, Snapshot
from hebbes.training.config import TrainConfig


@dataclass(frozen=True)
class Run:
    """A run that is ready to start or to resume."""

    config: TrainConfig
    task: Task
    strategy: Strategy
    engine: Engine
    folder: Path
    progress: Progress
    constants: Buffers = field(default_factory=dict)
    """The policy's buffers that training does not change: all except the observation statistics."""
    needs: str = ""
    """A line on the memory that the run needs. Empty if that is little."""
    lock: int | None = None
    """Open file descriptor whose lock keeps other processes out of the folder."""


def capture_checkpoint(run: Run, conditions: Mapping[str, str]) -> Checkpoint:
    """A copy of the run's present state; `conditions` are those of `provenance.find_conditions`."""
    strategy = {name: np.array(array) for name, array in run.strategy.state_dict().items()}
    latest = make_snapshot(run, run.progress, nan)
    return Checkpoint(run.config.as_options(), conditions, run.progress, strategy, latest)


def make_snapshot(run: Run, progress: Progress, score: float) -> Snapshot:
    """The mean policy as files hold it."""
    weights = np.array(run.strategy.mean)  # a copy, because a strategy may reuse its own array
    return Snapshot(progress.generation, progress.env_steps, score, weights, make_buffers(run, progress))


def make_buffers(run: Run, progress: Progress) -> Buffers:
    """The policy's buffers with the observation statistics so far."""
    if not run.config.evolution.observation_normalization:
        return run.constants
    return {**run.constants, **make_normalization_buffers(progress.moments, run.task.agent.policy.observation_shape)}
