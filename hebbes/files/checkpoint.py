"""Checkpoints: everything that a run needs to continue bit for bit. The newest three are kept.

A checkpoint is a checksummed file (`hebbes.files.checksummed_file`) named after its generation. It is written to a
temporary name, synced and renamed, so it is complete or absent. If one is damaged later, the one before it is used.
Every other file of a run can be made again from a checkpoint, except the rows of metrics.csv.
"""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from math import nan
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float32

from hebbes.contracts.engine import Moments
from hebbes.contracts.policy import Buffers
from hebbes.files.atomic_file import delete_leftovers, write_atomically
from hebbes.files.checksummed_file import Arrays, EntryTypes, NewerFormatError, decode, encode
from hebbes.files.weight_file import open_regular_file

FOLDER = "checkpoint"
NUM_KEPT = 3
MAX_FILE_BYTES = 2**30  # twice the size for the largest policy with the state of Adam
_ENTRIES: EntryTypes = {"config": dict, "conditions": dict, "progress": dict}


@dataclass(frozen=True)
class Snapshot:
    """The mean policy after a generation."""

    generation: int
    env_steps: int
    score: float
    """Mean return over fresh episodes. NaN if the policy was not evaluated or an episode failed."""
    weights: Float32[np.ndarray, " params"]
    buffers: Buffers


@dataclass(frozen=True)
class Progress:
    """What changes from generation to generation, apart from the strategy's state."""

    generation: int = 0
    """Number of finished generations."""
    env_steps: int = 0
    seconds: float = 0.0
    """Wall time of the training so far."""
    episode_length: float | None = None
    """Mean over the episodes of the last generation, in env steps. None before the first generation."""
    moments: Moments | None = None
    """Running mean and variance of all observations that a policy acted on."""
    best: Snapshot | None = None
    """The mean policy with the best score so far."""


@dataclass(frozen=True)
class Checkpoint:
    """The state of a run between two generations."""

    config: Mapping[str, Any]
    """The result of `TrainConfig.as_options`."""
    conditions: Mapping[str, str]
    """The result of `hebbes.training.provenance.find_conditions`."""
    progress: Progress
    strategy: Mapping[str, np.ndarray]
    """The result of `Strategy.state_dict`."""
    latest: Snapshot


def save_checkpoint(folder: Path, checkpoint: Checkpoint) -> None:
    """Writes a run's checkpoint and deletes all but the newest three. If it raises OSError, none was deleted."""
    generation = checkpoint.progress.generation
    write_atomically(folder / f"{generation:08d}.ckpt", _encode_checkpoint(checkpoint))
    earlier = [path for path in _list_paths(folder) if int(path.stem) <= generation]
    for path in earlier[:-NUM_KEPT]:
        with suppress(OSError):  # an old checkpoint that cannot be deleted does no harm
            path.unlink()
    delete_leftovers(folder)


def load_newest_checkpoint(folder: Path) -> tuple[Checkpoint, list[str]]:
    """The newest undamaged checkpoint, and one line about each newer one that is damaged.

    Raises ValueError if no checkpoint can be used, or if a newer version of this program wrote it.
    """
    damaged: list[str] = []
    for path in reversed(_list_paths(folder)):
        try:
            with open_regular_file(path, MAX_FILE_BYTES, "no checkpoint is that large") as file:
                return _decode_checkpoint(file.read()), damaged
        except NewerFormatError as error:
            raise ValueError(f"{path}: {error}") from error
        except OSError as error:
            damaged.append(f"{path}: {error.strerror}")
        except (ValueError, RecursionError) as error:
            damaged.append(f"{path}: {' '.join(str(error).split())}")
    raise ValueError(f"{folder} has no checkpoint that can be used" + "".join(f"; {line}" for line in damaged))


def _list_paths(folder: Path) -> list[Path]:
    return sorted(path for path in folder.glob("*.ckpt") if path.stem.isdecimal())


def _encode_checkpoint(checkpoint: Checkpoint) -> bytes:
    progress, best, latest = checkpoint.progress, checkpoint.progress.best, checkpoint.latest
    arrays = {f"strategy.{name}": array for name, array in checkpoint.strategy.items()} | _name_arrays("latest", latest)
    if progress.moments is not None:
        arrays |= {"moments.mean": progress.moments.mean, "moments.squares": progress.moments.squares}
    if best is not None:
        arrays |= _name_arrays("best", best)
    header = {
        "config": checkpoint.config,
        "conditions": checkpoint.conditions,
        "progress": {
            "generation": progress.generation,
            "env_steps": progress.env_steps,
            "seconds": progress.seconds,
            "episode_length": progress.episode_length,
            "observations": None if progress.moments is None else progress.moments.count,
            "best": None if best is None else _describe_snapshot(best),
            "latest": _describe_snapshot(latest),
        },
    }
    return encode("checkpoint", header, arrays)


def _decode_checkpoint(data: bytes) -> Checkpoint:
    header, arrays = decode(data, "checkpoint", _ENTRIES)
    try:
        found = header["progress"]
        moments = None
        if found["observations"] is not None:
            moments = Moments(found["observations"], arrays["moments.mean"], arrays["moments.squares"])
        best = None if found["best"] is None else _read_snapshot("best", found["best"], arrays)
        counters = found["generation"], found["env_steps"]
        if not all(type(count) is int and count >= 0 for count in counters) or not found["seconds"] >= 0:
            raise ValueError(f"its counters make no sense: {counters}, {found['seconds']}")
        progress = Progress(*counters, found["seconds"], found.get("episode_length"), moments, best)
        latest = _read_snapshot("latest", found["latest"], arrays)
    except (KeyError, TypeError) as error:
        raise ValueError(f"not a checkpoint of this version ({type(error).__name__}: {error})") from error
    return Checkpoint(header["config"], header["conditions"], progress, _select_arrays("strategy", arrays), latest)


def _name_arrays(name: str, snapshot: Snapshot) -> Arrays:
    buffers = {f"{name}.buffers.{key}": array for key, array in snapshot.buffers.items()}
    return {f"{name}.weights": snapshot.weights, **buffers}


def _describe_snapshot(snapshot: Snapshot) -> dict[str, Any]:
    score = snapshot.score if np.isfinite(snapshot.score) else None
    return {"generation": snapshot.generation, "env_steps": snapshot.env_steps, "score": score}


def _read_snapshot(name: str, described: Mapping[str, Any], arrays: Arrays) -> Snapshot:
    score = nan if described["score"] is None else described["score"]
    weights, buffers = arrays[f"{name}.weights"], _select_arrays(f"{name}.buffers", arrays)
    if weights.dtype != np.float32 or weights.ndim != 1 or not np.isfinite(weights).all():
        raise ValueError(f"its {name} weights are not a row of finite float32")
    return Snapshot(described["generation"], described["env_steps"], score, weights, buffers)


def _select_arrays(prefix: str, arrays: Arrays) -> Arrays:
    return {name[len(prefix) + 1 :]: array for name, array in arrays.items() if name.startswith(f"{prefix}.")}
