"""Run: everything that a run is made of, and copies of its present state."""

import errno
import json
import os
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from math import nan
from pathlib import Path
from typing import Any

import numpy as np

from hebbes.contracts.engine import Engine
from hebbes.contracts.trainer import MAX_VALUES_LENGTH, Progress, Snapshot, Trainer, TrainerState
from hebbes.environments.episode_limits import choose_evaluation_cap
from hebbes.execution.chunks import Task
from hebbes.files.checkpoint import Checkpoint, check_arrays
from hebbes.training.config import TrainConfig
from hebbes.training.contract_checks import call_part, check_finite_row, check_trainer_state


@dataclass(frozen=True)
class Run:
    """A run that is ready to start or to resume."""

    config: TrainConfig
    task: Task
    trainer: Trainer
    engine: Engine
    folder: Path
    progress: Progress
    conditions: Mapping[str, str]
    """Those of `provenance.find_conditions` under which its present state was made."""
    needs: str = ""
    """A line on the memory that the run needs. Empty if that is little."""
    lock: int | None = None
    """Open file descriptor whose lock keeps other processes out of the folder."""

    def close(self) -> None:
        """Ends its engine and its trainer. The lock stays."""
        with closing(self.trainer), closing(self.engine):
            pass

    def check_folder(self) -> None:
        """OSError if its folder was moved away, or if another one, perhaps of another run, has taken its name."""
        try:
            is_here = self.lock is None or os.path.samestat(os.fstat(self.lock), self.folder.stat())
        except OSError as error:
            raise OSError(error.errno, error.strerror, str(self.folder), None, str(self.folder)) from error
        if not is_here:
            raise OSError(errno.ESTALE, "Another folder has taken this name", str(self.folder), None, str(self.folder))

    @property
    def evaluation_cap(self) -> int | None:
        """The cap of the episodes of evaluations."""
        return choose_evaluation_cap(self.task.environment, self.config.training.max_episode_steps)


def capture_checkpoint(run: Run, progress: Progress, conditions: Mapping[str, str]) -> Checkpoint:
    """A copy of the run's present state; `conditions` are those of `provenance.find_conditions`.

    ValueError for a state that a checkpoint cannot hold, and TrainingError if `get_state` raises or returns none.
    """
    state = call_part(run.trainer, "get_state", run.trainer.get_state, check_trainer_state)
    check_arrays(state.arrays)
    arrays = {name: np.array(array) for name, array in state.arrays.items()}
    copied = TrainerState(arrays, _copy_values(state.values), dict(state.segments))
    return Checkpoint(run.config.as_options(), conditions, progress, copied, make_snapshot(run, progress))


def _copy_values(values: Mapping[str, Any]) -> dict[str, Any]:
    copied, length = {}, 0
    for name, value in values.items():
        try:
            text = json.dumps(value)
            _check_keys(value)
        except (TypeError, ValueError) as error:
            raise ValueError(f"the trainer's value {name!r} cannot be saved: {error}") from error
        copied[name], length = json.loads(text), length + len(text)
        if length > MAX_VALUES_LENGTH:
            raise ValueError(f"the trainer's values up to {name!r} have {length} characters, max. {MAX_VALUES_LENGTH}")
    return copied


def _check_keys(value: Any) -> None:
    """TypeError for a mapping whose keys JSON would turn into texts."""
    if isinstance(value, dict):
        if other := [key for key in value if not isinstance(key, str)]:
            raise TypeError(f"its keys must be texts, got {other[0]!r}")
        value = list(value.values())
    if isinstance(value, list | tuple):
        for each in value:
            _check_keys(each)


def make_snapshot(run: Run, progress: Progress) -> Snapshot:
    """The trainer's policy as files hold it, without a score; ValueError for weights that no file can hold."""
    weights, buffers = run.trainer.policy
    check_finite_row("policy", weights, run.task.agent.policy.layout)
    return Snapshot(progress.units, progress.env_steps, nan, weights.copy(), buffers)  # it may reuse its array
