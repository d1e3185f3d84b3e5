"""Checkpoints: files from which a run continues with the same bits. The newest three are kept, complete or not at all.

A checkpoint may name segments (`hebbes/files/segments.py`), which are written before it and deleted after the last
checkpoint that names them.
"""

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from math import nan
from pathlib import Path
from typing import Any

import numpy as np

from hebbes.contracts.errors import join_lines
from hebbes.contracts.plain_values import is_plain_array, prefix_arrays, select_arrays
from hebbes.contracts.trainer import Progress, Snapshot, TrainerState
from hebbes.files.atomic_file import delete_leftovers, write_atomically
from hebbes.files.checksummed_file import (
    MAX_HEADER_BYTES,
    Arrays,
    EntryTypes,
    NewerFormatError,
    decode,
    encode,
    peek,
)
from hebbes.files.segments import delete_segments, read_segment, write_segments
from hebbes.files.weight_file import open_regular_file

FOLDER = "checkpoint"
NUM_KEPT = 3
MAX_FILE_BYTES = 2**30  # twice the size for the largest policy with the state of Adam
MAX_STATE_BYTES = MAX_FILE_BYTES - 2**27 - 2**21  # the rest is for two policies of the largest size and the header
_ENTRIES: EntryTypes = {"config": dict, "conditions": dict, "progress": dict}
_SNAPSHOTS = ("best", "latest")
_COUNTERS = ("generation", "env_steps", "seconds", *_SNAPSHOTS)
"""Entries of `progress`. `generation` counts units of any kind. In files of earlier versions, others are values."""
MAX_NAMES_LENGTH = 2**18
"""Largest length of the names of a state's arrays, with 100 characters for each array. The file's header holds them."""
_STATE = "trainer"
"""The word before the dot in the names of the trainer's arrays."""


@dataclass(frozen=True)
class Checkpoint:
    """The state of a run between two units."""

    config: Mapping[str, Any]
    """The result of `TrainConfig.as_options`."""
    conditions: Mapping[str, str]
    """The result of `hebbes.execution.provenance.find_conditions`."""
    progress: Progress
    state: TrainerState
    latest: Snapshot


@dataclass(frozen=True)
class CheckpointHeader:
    """What a checkpoint says about its run, without the weights."""

    config: Mapping[str, Any]
    units: int
    env_steps: int
    seconds: float
    best_score: float
    """NaN before the first evaluation, or if an episode of it failed."""


def check_arrays(arrays: Mapping[str, np.ndarray]) -> None:
    """ValueError for arrays of a state that a checkpoint cannot hold."""
    for name, array in arrays.items():
        if not isinstance(name, str):
            raise ValueError(f"names of arrays must be texts, got {name!r}")
        if not (is_plain_array(array) and array.dtype.kind in "biuf" and array.dtype.itemsize <= 8):
            found = f"dtype {array.dtype}" if is_plain_array(array) else f"a {type(array).__name__}"
            raise ValueError(
                f"array {name!r} cannot be saved: it must be a plain array of numbers with at most 64 bits, got {found}"
            )
        if not array.flags.c_contiguous:
            raise ValueError(
                f"array {name!r} cannot be saved: it must be contiguous in C order, as it will be after a resume, or "
                "last bits would differ (numpy.ascontiguousarray)"
            )
    length = sum(len(json.dumps(name)) + 100 for name in arrays)
    if length > MAX_NAMES_LENGTH:
        raise ValueError(
            f"the state has too many arrays, or their names are too long: {length}, max. {MAX_NAMES_LENGTH}"
        )
    size = sum(array.nbytes for array in arrays.values())
    if size > MAX_STATE_BYTES:
        raise ValueError(f"the state has {size} bytes in its arrays, max. {MAX_STATE_BYTES}")


def save_checkpoint(folder: Path, checkpoint: Checkpoint) -> None:
    """Writes a run's checkpoint and deletes all but the newest three. If it raises OSError, none was deleted."""
    units, segments = checkpoint.progress.units, checkpoint.state.segments.values()
    try:
        write_segments(folder, segments)
        write_atomically(folder / f"{units:08d}.ckpt", _encode_checkpoint(checkpoint))
    except OSError:
        _delete_unneeded_segments(folder)
        raise
    earlier = [path for path in _list_paths(folder) if int(path.stem) <= units]
    for path in earlier[:-NUM_KEPT]:
        with suppress(OSError):  # an old checkpoint that cannot be deleted does no harm
            path.unlink()
    _delete_unneeded_segments(folder, *(segment.sha256 for segment in segments))
    delete_leftovers(folder)


def load_newest_checkpoint(folder: Path) -> tuple[Checkpoint, list[str]]:
    """The newest undamaged checkpoint, and one line about each newer one that is damaged or lacks a segment.

    Raises ValueError if no checkpoint can be used, or if a newer version of this program wrote it.
    """
    damaged: list[str] = []
    for path in reversed(_list_paths(folder)):
        try:
            return _load_checkpoint(path), damaged
        except NewerFormatError as error:
            raise ValueError(f"{path}: {error}") from error
        except OSError as error:
            damaged.append(f"{path}: {error.strerror}")
        except (ValueError, RecursionError) as error:
            damaged.append(f"{path}: {join_lines(error)}")
    helps = "begin a new run, to which --init_from can give the weights of latest.dat"
    raise ValueError("; ".join([f"{folder} has no checkpoint that can be used: {helps}", *damaged]))


def _load_checkpoint(path: Path) -> Checkpoint:
    with open_regular_file(path, MAX_FILE_BYTES, "no checkpoint is that large") as file:
        checkpoint = _decode_checkpoint(file.read(), path.parent)
    if checkpoint.progress.units != int(path.stem):
        raise ValueError(f"of another name: it holds the state after {checkpoint.progress.units}")
    return checkpoint


def read_newest_header(folder: Path, *, check: bool = False) -> CheckpointHeader:
    """The header of the newest checkpoint that has a header and the right size; ValueError if there is none.

    It is quick, because neither arrays nor the checksum are read, unless `check` says so.
    """
    damaged = []
    for path in reversed(_list_paths(folder)):
        try:
            if check:
                _load_checkpoint(path)
            return _read_header(path)
        except (OSError, ValueError, LookupError, TypeError, ArithmeticError, RecursionError) as error:
            damaged.append(f"{path.name}: {join_lines(error)}")
    raise ValueError("; ".join(damaged) or "no checkpoint")


def _read_header(path: Path) -> CheckpointHeader:
    with open_regular_file(path, MAX_FILE_BYTES, "no checkpoint is that large") as file:
        start = file.read(8 + MAX_HEADER_BYTES)
    header, _, size = peek(start, "checkpoint", _ENTRIES)
    if (found_size := path.stat().st_size) != size:
        raise ValueError(f"truncated or damaged: {found_size} of {size} bytes")
    found = header["progress"]
    score = None if found["best"] is None else found["best"]["score"]
    counts = int(found["generation"]), int(found["env_steps"]), float(found["seconds"])
    return CheckpointHeader(header["config"], *counts, nan if score is None else float(score))


def _list_paths(folder: Path) -> list[Path]:
    """The files of the checkpoints, the oldest first; OSError if the folder is there and cannot be read."""
    try:
        paths = list(folder.iterdir())
    except (FileNotFoundError, NotADirectoryError):
        return []
    found = [path for path in paths if path.suffix == ".ckpt" and path.stem.isdecimal()]
    return sorted(found, key=lambda path: int(path.stem))


def _delete_unneeded_segments(folder: Path, *needed: str) -> None:
    """Deletes the segments that are not `needed` and that no checkpoint names; none if a checkpoint cannot be read."""
    with suppress(OSError, ValueError, RecursionError):
        if any(folder.glob("*.segment")):
            delete_segments(folder, {*needed, *(name for path in _list_paths(folder) for name in _list_segments(path))})


def _list_segments(path: Path) -> list[str]:
    """Checksums of the segments that a checkpoint names."""
    with open_regular_file(path, MAX_FILE_BYTES, "no checkpoint is that large") as file:
        header, _, _ = peek(file.read(8 + MAX_HEADER_BYTES), "checkpoint", _ENTRIES)
    return list(_get_segments(header["progress"]).values())


def _get_segments(progress: Mapping[str, Any]) -> dict[str, str]:
    """Name -> checksum of each segment; ValueError if this entry of the header is damaged."""
    segments = progress.get("segments", {})
    if not (isinstance(segments, dict) and all(isinstance(sha256, str) for sha256 in segments.values())):
        raise ValueError("its segments are not names with checksums")
    return segments


def _encode_checkpoint(checkpoint: Checkpoint) -> bytes:
    progress, state = checkpoint.progress, checkpoint.state
    arrays: Arrays = prefix_arrays(_STATE, state.arrays)
    described: dict[str, Any] = {"values": json.dumps(dict(state.values))}  # a text, because values may be NaN
    for name, snapshot in zip(_SNAPSHOTS, (progress.best, checkpoint.latest), strict=True):
        described[name] = None if snapshot is None else _describe_snapshot(snapshot)
        arrays |= {} if snapshot is None else _name_arrays(name, snapshot)
    described |= {"generation": progress.units, "env_steps": progress.env_steps, "seconds": progress.seconds}
    if state.segments:
        described["segments"] = {name: segment.sha256 for name, segment in state.segments.items()}
    header = {"config": checkpoint.config, "conditions": checkpoint.conditions, "progress": described}
    return encode("checkpoint", header, arrays)


def _decode_checkpoint(data: bytes, folder: Path) -> Checkpoint:
    header, arrays = decode(data, "checkpoint", _ENTRIES)
    try:
        found = header["progress"]
        best = None if found["best"] is None else _read_snapshot("best", found["best"], arrays)
        counters = found["generation"], found["env_steps"]
        if not all(type(count) is int and count >= 0 for count in counters) or not found["seconds"] >= 0:
            raise ValueError(f"its counters make no sense: {counters}, {found['seconds']}")
        latest = _read_snapshot("latest", found["latest"], arrays)
        state = _read_state(found, arrays, folder)
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"not a checkpoint of this version ({type(error).__name__}: {error})") from error
    progress = Progress(*counters, found["seconds"], best)
    return Checkpoint(header["config"], header["conditions"], progress, state, latest)


def _read_state(found: Mapping[str, Any], arrays: Arrays, folder: Path) -> TrainerState:
    segments = {name: read_segment(folder, sha256) for name, sha256 in _get_segments(found).items()}
    if "values" in found:
        return TrainerState(select_arrays(_STATE, arrays), dict(json.loads(found["values"])), segments)
    own = {name: array for name, array in arrays.items() if name.partition(".")[0] not in _SNAPSHOTS}
    return TrainerState(own, {name: value for name, value in found.items() if name not in _COUNTERS})


def _name_arrays(name: str, snapshot: Snapshot) -> Arrays:
    buffers = {f"{name}.buffers.{key}": array for key, array in snapshot.buffers.items()}
    return {f"{name}.weights": snapshot.weights, **buffers}


def _describe_snapshot(snapshot: Snapshot) -> dict[str, Any]:
    score = snapshot.score if np.isfinite(snapshot.score) else None
    return {"generation": snapshot.units, "env_steps": snapshot.env_steps, "score": score}


def _read_snapshot(name: str, described: Mapping[str, Any], arrays: Arrays) -> Snapshot:
    score = nan if described["score"] is None else described["score"]
    weights, buffers = arrays[f"{name}.weights"], select_arrays(f"{name}.buffers", arrays)
    if weights.dtype != np.float32 or weights.ndim != 1 or not np.isfinite(weights).all():
        raise ValueError(f"its {name} weights are not a row of finite float32")
    return Snapshot(described["generation"], described["env_steps"], score, weights, buffers)
