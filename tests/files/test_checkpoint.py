"""Checkpoints: a trainer's state of any names comes back, and no save costs a segment that another checkpoint needs."""

import json
import tracemalloc
from math import inf, isnan, nan

import numpy as np
import pytest

from hebbes.contracts import trainer as contracts
from hebbes.contracts.trainer import Progress, Segment, Snapshot, TrainerState
from hebbes.files import checkpoint as checkpoints
from hebbes.files import segments as segment_files
from hebbes.files.checkpoint import Checkpoint, load_newest_checkpoint, save_checkpoint
from hebbes.files.checksummed_file import FORMAT_VERSIONS, encode


def save(folder, units, **state):
    """Saves a checkpoint with this state of its trainer."""
    latest = Snapshot(units, units, nan, np.zeros(3, np.float32), {"x": np.ones(2)})
    save_checkpoint(folder, Checkpoint({}, {}, Progress(units, units), TrainerState(**state), latest))


def save_segment(folder, units):
    """Saves a checkpoint with a segment of its own."""
    save(folder, units, segments={"rows": Segment({"rows": np.full(4, units)})})


def list_segments(folder):
    return {path.name for path in folder.glob("*.segment")}


def test_a_trainers_names_are_free(tmp_path):
    names = ["best", "latest", "generation", "env_steps", "seconds", "segments", "values", "trainer"]
    arrays = {f"{name}.weights": np.array([number]) for number, name in enumerate(names)}
    save(tmp_path, 4, arrays=arrays, values=dict.fromkeys(names, 9))
    found, _ = load_newest_checkpoint(tmp_path)
    assert found.state.arrays == arrays and found.state.values == dict.fromkeys(names, 9)
    assert found.progress == Progress(4, 4) and found.latest.buffers["x"].tolist() == [1, 1]


def test_a_checkpoint_with_the_number_of_the_format_before_is_read(tmp_path, monkeypatch):
    with monkeypatch.context() as patched:
        patched.setitem(FORMAT_VERSIONS, "checkpoint", 3)
        save(tmp_path, 4, arrays={"mean": np.arange(3)}, values={"score": 1.0})
    found, damaged = load_newest_checkpoint(tmp_path)
    assert (found.progress, found.state.values, damaged) == (Progress(4, 4), {"score": 1.0}, [])
    assert found.state.arrays["mean"].tolist() == [0, 1, 2]


def test_values_may_be_nan_and_infinite(tmp_path):
    save(tmp_path, 1, values={"score": nan, "bounds": [-inf, {"high": inf}]})
    values = load_newest_checkpoint(tmp_path)[0].state.values
    assert isnan(values["score"]) and values["bounds"] == [-inf, {"high": inf}]


def test_newer_checkpoints_that_are_damaged_do_not_count_among_the_newest_three(tmp_path):
    save(tmp_path, 1)
    for units in (7, 8, 9):
        (tmp_path / f"{units:08}.ckpt").write_bytes(b"damaged")
    save(tmp_path, 2)
    found, damaged = load_newest_checkpoint(tmp_path)
    assert (found.progress.units, len(damaged)) == (2, 3)


@pytest.mark.parametrize("failures", [OSError(24, "Too many open files"), OSError(5, "Input/output error")])
def test_a_save_that_cannot_read_a_checkpoint_deletes_no_segment(failures, tmp_path, monkeypatch):
    for units in (1, 2, 3):
        save_segment(tmp_path, units)
    before, opened = list_segments(tmp_path), checkpoints.open_regular_file

    def refuse(*arguments):
        raise failures

    monkeypatch.setattr(checkpoints, "open_regular_file", refuse)
    save_segment(tmp_path, 4)
    assert list_segments(tmp_path) > before
    monkeypatch.setattr(checkpoints, "open_regular_file", opened)
    save_segment(tmp_path, 5)
    assert len(list_segments(tmp_path)) == 3
    assert load_newest_checkpoint(tmp_path)[0].progress.units == 5


@pytest.mark.parametrize("segments", [["x"], {"rows": ["x"]}, {"rows": 3}, None])
def test_a_checkpoint_whose_segments_make_no_sense_is_damaged(segments, tmp_path):
    save_segment(tmp_path, 1)
    before = list_segments(tmp_path)
    progress = {"generation": 2, "env_steps": 0, "seconds": 0.0, "best": None, "latest": {}, "segments": segments}
    header = {"config": {}, "conditions": {}, "progress": {**progress, "values": json.dumps({})}}
    latest = {"latest.weights": np.zeros(3, np.float32)}
    (tmp_path / "00000002.ckpt").write_bytes(encode("checkpoint", header, latest))
    save_segment(tmp_path, 3)
    assert list_segments(tmp_path) > before
    (tmp_path / "00000003.ckpt").unlink()
    found, lines = load_newest_checkpoint(tmp_path)
    assert found.progress.units == 1 and "00000002.ckpt: " in lines[0]


def test_checkpoints_that_are_refused_leave_no_segments(tmp_path, monkeypatch):
    save_segment(tmp_path, 1)
    before, write = list_segments(tmp_path), checkpoints.write_atomically

    def refuse(path, data):
        raise OSError(28, "No space left on device", str(path))

    monkeypatch.setattr(checkpoints, "write_atomically", refuse)
    for units in (2, 3, 4):
        with pytest.raises(OSError, match="No space left"):
            save_segment(tmp_path, units)
        assert list_segments(tmp_path) == before
    monkeypatch.setattr(checkpoints, "write_atomically", write)
    save_segment(tmp_path, 5)
    assert len(list_segments(tmp_path)) == 2
    assert load_newest_checkpoint(tmp_path)[0].state.segments["rows"].arrays["rows"].tolist() == [5] * 4


def test_segments_are_there_before_the_checkpoint_that_names_them(tmp_path, monkeypatch):
    written, write = [], checkpoints.write_atomically

    def record(path, content):
        written.append(path.suffix)
        write(path, content)

    for module in (checkpoints, segment_files):
        monkeypatch.setattr(module, "write_atomically", record)
    save(tmp_path, 1, segments={f"rows{k}": Segment({"rows": np.full(3, k)}) for k in range(2)})
    assert written == [".segment", ".segment", ".ckpt"]


def test_a_segment_that_was_refused_is_written_by_the_next_save(tmp_path, monkeypatch):
    segments, write = {"rows": Segment({"rows": np.arange(3)})}, checkpoints.write_atomically
    save(tmp_path, 1)
    monkeypatch.setattr(checkpoints, "write_atomically", lambda path, data: (tmp_path / "none" / "x").write_bytes(data))
    with pytest.raises(OSError, match="No such file"):
        save(tmp_path, 2, segments=segments)
    monkeypatch.setattr(checkpoints, "write_atomically", write)
    save(tmp_path, 3, segments=segments)
    assert load_newest_checkpoint(tmp_path)[0].state.segments["rows"].sha256 == segments["rows"].sha256


def test_a_segment_of_more_than_its_limit_is_refused_when_it_is_made(monkeypatch):
    monkeypatch.setattr(contracts, "MAX_SEGMENT_BYTES", 100)
    with pytest.raises(ValueError, match=r"at most 100 bytes, got 104 in rows$"):
        Segment({"rows": np.zeros(13)})


def test_segments_are_read_when_they_are_asked_for(tmp_path):
    segments = {f"rows{k}": Segment({"rows": np.full(2**18, k, np.float32)}) for k in range(20)}  # 1 MB each
    save(tmp_path, 1, segments=segments)
    load_newest_checkpoint(tmp_path)
    tracemalloc.start()
    loaded = load_newest_checkpoint(tmp_path)[0].state.segments
    total = sum(float(loaded[f"rows{k}"].arrays["rows"][-1]) for k in range(20))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert total == sum(range(20))
    assert peak < 6e6


@pytest.mark.parametrize(("content", "reason"), [(None, "no such file"), (b"", "the file is empty")])
def test_a_segment_that_cannot_be_read_is_named(content, reason, tmp_path):
    save_segment(tmp_path, 1)
    (name,) = list_segments(tmp_path)
    (tmp_path / name).unlink()
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(ValueError, match=rf"00000001\.ckpt: segment {name[:12]}: {reason}"):
        load_newest_checkpoint(tmp_path)
