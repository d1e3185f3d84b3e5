"""Trainers that are not evolution run under the whole lifecycle: metrics, checkpoints, segments, signals, resume."""

import os

import numpy as np
import pytest

from hebbes.contracts import trainer as contracts
from hebbes.contracts.trainer import Segment, Trainer, TrainerState
from hebbes.files import segments as segment_files
from hebbes.files.checkpoint import load_newest_checkpoint
from hebbes.files.policy_file import read_policy_file
from hebbes.recording.loggers import Loggers
from hebbes.recording.metrics import read_metrics
from hebbes.registry.tables import TRAINERS
from hebbes.training import lifecycle, run_folder
from hebbes.training import run as run_module
from hebbes.training.advice import TrainingError
from hebbes.training.prepare import prepare
from hebbes.training.run import execute
from tests.training import toy_trainers
from tests.training.scripted_runs import make_resumed_config, make_scripted_config, read_outcome, resume, train

TOYS = list(toy_trainers.TOYS)


@pytest.fixture(autouse=True)
def toys_in_the_table():
    with pytest.MonkeyPatch.context() as patch:  # of its own, because tests undo theirs
        for name, place in toy_trainers.TOYS.items():
            patch.setitem(TRAINERS, name, place)
        yield


def list_segments(folder):
    return sorted(path.stem for path in (folder / "checkpoint").glob("*.segment"))


def list_named(folder):
    checkpoint, _ = load_newest_checkpoint(folder / "checkpoint")
    return {segment.sha256 for segment in checkpoint.state.segments.values()}


@pytest.mark.usefixtures("drawn_curves")
@pytest.mark.parametrize("toy", TOYS)
def test_a_toy_trainer_has_a_whole_run(toy, tmp_path, capsys):
    folder = train(make_scripted_config(tmp_path, toy, eval_every=3, test_episodes=2, tensorboard=True))
    assert {path.name for path in folder.iterdir()} >= {
        *("best.dat", "latest.dat", "config.yaml", "metrics.csv", "learning_curve.png", "test.json", "checkpoint")
    }
    assert list(folder.glob("events.*"))
    metrics, best = read_metrics(folder / "metrics.csv"), read_policy_file(folder / "best.dat", ["tests"])
    assert metrics["try"].tolist() == list(range(1, 10))
    assert metrics["env_steps"].tolist() == list(range(10, 100, 10))
    due = {"random": [3, 6, 9], "replay": list(range(1, 10))}[toy]  # by tries, or by env steps
    assert (np.flatnonzero(np.isfinite(metrics["eval_return"])) + 1).tolist() == due
    assert best.provenance["score"] == np.nanmax(metrics["eval_return"]) == metrics["best_score"][-1]
    said = capsys.readouterr().out
    assert "\n  try env steps" in said and "training ended: try 9 of 9 is done" in said
    assert said.count(": tried ") == 1 and "try 1: tried " in said  # one problem that lasts
    assert f"of try {best.provenance['try']}\n" in said


def test_of_equal_scores_the_first_is_the_best(tmp_path):
    folder = train(make_scripted_config(tmp_path, "random", env_kwargs={"rewards": [1.0], "truncate_at": 5}))
    assert read_metrics(folder / "metrics.csv")["eval_return"].tolist() == [5.0] * 9
    assert read_policy_file(folder / "best.dat", ["tests"]).provenance["try"] == 1


def test_a_trainer_may_reuse_the_array_of_its_policy(tmp_path, monkeypatch):
    whole = read_outcome(train(make_scripted_config(tmp_path, "random", run_name="whole")))
    row = np.empty(4, np.float32)
    reused = property(lambda self: (np.copyto(row, self.weights) or row, self.buffers))
    monkeypatch.setattr(toy_trainers.RandomSearch, "policy", reused)
    assert read_outcome(train(make_scripted_config(tmp_path, "random", run_name="reused"))) == whole


def test_rows_are_on_the_disk_before_the_checkpoint_that_counts_them(tmp_path, monkeypatch):
    (run,) = prepare(make_scripted_config(tmp_path, "random", generations=4, eval_every=9))
    done, save, metrics = [], run_folder.save_checkpoint, run.folder / "metrics.csv"

    def sync(descriptor):
        if metrics.exists() and os.path.samestat(os.fstat(descriptor), metrics.stat()):
            done.append(f"{len(metrics.read_text().splitlines())} lines")

    def record(folder, checkpoint):
        done.append(f"try {checkpoint.progress.units}")
        save(folder, checkpoint)

    monkeypatch.setattr(os, "fsync", sync)
    monkeypatch.setattr(run_folder, "save_checkpoint", record)
    execute(run)
    assert done == ["0 lines", "try 0", "3 lines", "try 2", "5 lines", "try 4"]


@pytest.mark.parametrize("toy", TOYS)
@pytest.mark.parametrize("stop", [0, 4, 7])
def test_one_that_is_interrupted_in_a_unit_resumes_to_the_same_bits(toy, stop, tmp_path):
    whole = read_outcome(train(make_scripted_config(tmp_path, toy, run_name="whole")))
    (run,) = prepare(make_scripted_config(tmp_path, toy, checkpoint_every=100, eval_every=100))
    advance = run.trainer.advance

    def interrupt(progress, engine):
        result = advance(progress, engine)
        if progress.units == stop:
            raise KeyboardInterrupt
        return result

    run.trainer.advance = interrupt
    with pytest.raises(KeyboardInterrupt):
        execute(run)
    found, _ = load_newest_checkpoint(run.folder / "checkpoint")
    assert found.progress.units == stop
    (run,) = prepare(make_resumed_config(run.folder, toy, checkpoint_every=1))
    execute(run)
    outcome = read_outcome(run.folder)
    assert {name: outcome[name] for name in ("weights", "segments")} == {
        name: whole[name] for name in ("weights", "segments")
    }


def test_segments_are_written_once_and_deleted_after_the_last_checkpoint_that_names_them(tmp_path, monkeypatch):
    written, write = [], segment_files.write_atomically
    monkeypatch.setattr(
        segment_files, "write_atomically", lambda path, data: (written.append(path.stem), write(path, data))
    )
    folder = train(make_scripted_config(tmp_path, "replay", checkpoint_every=1))
    named = load_newest_checkpoint(folder / "checkpoint")[0].state.segments
    assert [written.count(segment.sha256) for segment in named.values()] == [1] * 3  # two blocks and the last one
    assert len(set(written)) > len(list_segments(folder))
    assert list_named(folder) < set(list_segments(folder))
    resume(folder, "replay", generations=14, checkpoint_every=1)
    assert len(list_segments(folder)) <= 3 + toy_trainers.MOST_BLOCKS + 2


def test_between_two_checkpoints_no_segment_is_read(tmp_path, monkeypatch):
    read = []

    class Watched(Segment):
        def __post_init__(self):
            """Asking for the sizes is not reading."""

        @property
        def arrays(self):
            read.append(self)
            return self._arrays

        @arrays.setter
        def arrays(self, arrays):
            self._arrays = arrays

    monkeypatch.setattr(
        toy_trainers.ReplaySearch,
        "get_state",
        lambda self: TrainerState({"weights": self.weights}, {"score": None}, {"last": Watched({"x": np.ones(3)})}),
    )
    train(make_scripted_config(tmp_path, "replay", checkpoint_every=5, eval_every=10**6))
    assert len(set(read)) == 4  # when the folder is made, and after 0, 5 and 9 units


@pytest.mark.parametrize(
    "damage", ["flipped", *(pytest.param(each, marks=pytest.mark.slow) for each in ("gone", "cut", "empty"))]
)
def test_a_checkpoint_without_its_segments_is_passed_over(damage, tmp_path, capsys):
    whole = read_outcome(train(make_scripted_config(tmp_path, "replay", run_name="whole")))
    folder = train(make_scripted_config(tmp_path, "replay", generations=7, checkpoint_every=1))
    newest, _ = load_newest_checkpoint(folder / "checkpoint")
    path = folder / "checkpoint" / f"{newest.state.segments['last'].sha256}.segment"
    data = path.read_bytes()
    path.unlink()
    if damage != "gone":
        path.write_bytes({"cut": data[:-1], "flipped": data[:-1] + bytes([data[-1] ^ 1]), "empty": b""}[damage])
    resume(folder, "replay")
    assert "00000007.ckpt: " in capsys.readouterr().err
    assert read_outcome(folder)["weights"] == whole["weights"]
    assert list_named(folder) <= set(list_segments(folder))


def test_a_segment_of_another_name_is_not_opened(tmp_path):
    for name in ("../../secret", "0" * 63):
        with pytest.raises(ValueError, match="names no segment"):
            segment_files.read_segment(tmp_path, name)


def test_a_full_disk_leaves_the_checkpoint_before(tmp_path, monkeypatch, capsys):
    write, refused = segment_files.write_atomically, []

    def refuse(path, data):
        if len(refused) < 2 and list(path.parent.glob("00000004.ckpt")):
            refused.append(path)
            raise OSError(28, "No space left on device", str(path))
        write(path, data)

    monkeypatch.setattr(segment_files, "write_atomically", refuse)
    options = {"checkpoint_every": 2, "eval_every": 10**6}
    folder = train(make_scripted_config(tmp_path, "replay", **options))
    assert "try 6 not saved (No space left on device" in capsys.readouterr().out
    monkeypatch.undo()
    whole = train(make_scripted_config(tmp_path, "replay", run_name="whole", **options))
    assert read_outcome(folder) == read_outcome(whole)


@pytest.mark.parametrize(
    ("values", "line"),
    [
        ({"score": np.float32(1)}, "try 5: the trainer's value 'score' cannot be saved: .*float32"),
        ({"score": 1.0, "notes": "x" * 2**17}, "try 5: the trainer's values up to 'notes' have 131.* characters"),
    ],
)
def test_a_state_that_no_checkpoint_holds_ends_the_run_after_the_unit_before_is_saved(values, line, tmp_path):
    (run,) = prepare(make_scripted_config(tmp_path, "random", checkpoint_every=100, eval_every=100))
    advance, get_state = run.trainer.advance, run.trainer.get_state

    def spoil(progress, engine):
        if progress.units == 4:
            run.trainer.get_state = lambda: TrainerState(get_state().arrays, values)
        return advance(progress, engine)

    run.trainer.advance = spoil
    with pytest.raises(TrainingError, match=line):
        execute(run)
    assert load_newest_checkpoint(run.folder / "checkpoint")[0].progress.units == 4


@pytest.mark.parametrize(("seconds_unsaved", "newest"), [(300, [0] * 9), (0, [*range(9)])])
def test_a_checkpoint_is_due_once_the_last_is_old(seconds_unsaved, newest, tmp_path, monkeypatch):
    monkeypatch.setattr(lifecycle, "SECONDS_UNSAVED", seconds_unsaved)
    (run,) = prepare(make_scripted_config(tmp_path, "random", checkpoint_every=100, eval_every=100))
    found = []  # before the checkpoint of the row's own unit

    def look(row):
        found.append(load_newest_checkpoint(run.folder / "checkpoint")[0].progress.units)

    execute(run, on_row=look)
    assert found == newest


def test_a_segment_that_is_too_large_ends_the_run_after_the_unit_before_is_saved(tmp_path, monkeypatch):
    (run,) = prepare(make_scripted_config(tmp_path, "replay", checkpoint_every=100, eval_every=10**6))
    monkeypatch.setattr(contracts, "MAX_SEGMENT_BYTES", toy_trainers.BLOCK * 12 - 1)  # one byte less than a full block
    with pytest.raises(TrainingError, match=r"^try 3: a segment holds at most 299 bytes, got 300 in rows$"):
        execute(run)
    assert load_newest_checkpoint(run.folder / "checkpoint")[0].progress.units == 2


def test_a_trainer_that_lacks_a_method_is_not_made():
    class Forgetful(Trainer):
        unit = "try"
        advance = policy = set_state = None

    with pytest.raises(TypeError, match="get_state"):
        Forgetful()


@pytest.mark.parametrize(
    ("state", "line"),
    [
        (
            TrainerState({f"{number}{'x' * 1000}": np.zeros(1) for number in range(1100)}),
            "the state has too many arrays",
        ),
        (TrainerState(values={"trainer": object()}), "the trainer's value 'trainer' cannot be saved"),
    ],
)
def test_a_run_that_cannot_be_saved_at_its_start_leaves_no_logger_open(state, line, tmp_path, monkeypatch):
    opened = []

    class Watched(Loggers):
        def __init__(self, *arguments, **options):
            super().__init__(*arguments, **options)
            opened.append(self)

        def close(self):
            opened.clear()
            return super().close()

    monkeypatch.setattr(run_module, "Loggers", Watched)
    (run,) = prepare(make_scripted_config(tmp_path, "random"))
    run.trainer.get_state = lambda: state
    with pytest.raises(TrainingError, match=f"try 0.*: {line}"):
        execute(run)
    assert opened == []
