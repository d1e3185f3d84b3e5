"""How runs begin: their folders, and what is left if one cannot begin."""

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest

from hebbes.strategies.openai_es import OpenAIES
from hebbes.training import run_folder
from hebbes.training.advice import TrainingError
from hebbes.training.prepare import prepare
from hebbes.training.run import execute
from hebbes.training.run_state import Run
from tests.training.scripted_runs import change, make_scripted_config, train


@pytest.fixture
def config(tmp_path):
    """Options of a short run."""
    return make_scripted_config(tmp_path, generations=2)


@pytest.mark.parametrize(
    ("options", "line"),
    [
        ({"env_kwargs": {"raise_in": "json:tool"}}, "needs code from the module 'json'"),
        ({"folder": "~nobody-at-all/weights"}, "folder ~nobody-at-all/weights: no such user"),
    ],
)
def test_what_would_stop_a_run_later_is_refused_before(options, line, tmp_path):
    with pytest.raises(ValueError, match=f"^{line}"):
        prepare(make_scripted_config(tmp_path, generations=1, **options))


def test_an_existing_folder_is_refused_and_left_alone(config):
    folder = train(config)
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    with pytest.raises(ValueError, match=r"run folder .*run exists already; --resume it, or choose another --run_name"):
        prepare(config)
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before


@pytest.mark.parametrize("within", ["", "checkpoint"])
def test_a_folder_within_a_run_is_refused(config, within):
    folder = train(config)
    with pytest.raises(ValueError, match=rf"folder .* is within the run {folder}, where no program would find it"):
        prepare(change(config, folder=str(folder / within)))


def test_a_folder_that_cannot_be_made_is_refused(config, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ValueError, match=r"cannot write to run folder .*: Not a directory"):
        prepare(change(config, folder=str(tmp_path / "file")))


@pytest.mark.parametrize("seeds", [1, 2])
def test_a_run_whose_folder_cannot_be_made_leaves_no_engine(config, tmp_path, monkeypatch, seeds):
    closed = []
    monkeypatch.setattr(Run, "close", lambda run: closed.append(run.folder))
    (tmp_path / "file").write_text("")
    with pytest.raises(ValueError, match="cannot write to run folder"):
        prepare(change(config, folder=str(tmp_path / "file"), seeds=seeds))
    assert len(closed) == 1


def test_a_run_whose_logger_cannot_start_leaves_no_engine(config, monkeypatch):
    (prepared,) = prepare(config)
    closed = []
    monkeypatch.setattr(prepared.engine, "close", lambda: closed.append("engine"))
    monkeypatch.setattr(prepared.trainer, "close", lambda: closed.append("trainer"))
    monkeypatch.setattr("hebbes.training.run.Loggers", lambda *_: Path("/nowhere/events").stat())
    with pytest.raises(TrainingError, match="No such file"):
        execute(prepared)
    assert closed == ["engine", "trainer"]


def test_a_policy_that_no_file_could_hold_is_refused_before_anything_is_written(config, tmp_path):
    with pytest.raises(ValueError, match=r"has 40000000 parameters, by hidden_sizes \[10000000\]; .* holds 16515072"):
        prepare(change(config, policy="mlp", bias=False, hidden_sizes=(10_000_000,)))
    assert not list(tmp_path.iterdir())


class Overtaken(OpenAIES):
    """A strategy whose constructor makes the folder of this run, as another run might."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        (Path(os.environ["OVERTAKEN"]) / "checkpoint").mkdir(parents=True, exist_ok=True)


def test_a_folder_made_in_between_is_left_alone(config, tmp_path, monkeypatch):
    folder = tmp_path / config.environment.id / "run"
    monkeypatch.setenv("OVERTAKEN", str(folder))
    with pytest.raises(ValueError, match=r"run folder .*run exists already; --resume it, or choose another --run_name"):
        prepare(change(config, strategy=f"{__name__}:Overtaken"))
    assert [path.name for path in folder.parent.iterdir()] == ["run"]
    assert [path.name for path in folder.iterdir()] == ["checkpoint"]


@pytest.mark.parametrize("seeds", [1, 2])
def test_of_runs_of_one_name_that_start_at_once_one_begins(seeds, config, tmp_path):
    start = Barrier(4)

    def begin(_):
        start.wait()
        try:
            return prepare(change(config, seeds=seeds))
        except ValueError as error:
            return str(error)

    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(begin, range(4)))
    losers = [line for line in found if isinstance(line, str)]
    assert len(losers) == 3 and all("exists already; --resume it" in line for line in losers)
    assert [path.name for path in (tmp_path / config.environment.id).iterdir()] == ["run"]


def test_runs_without_a_name_that_start_at_once_all_begin(config, tmp_path):
    with ThreadPoolExecutor(3) as pool:
        list(pool.map(lambda _: prepare(change(config, run_name=None)), range(3)))
    assert len(list((tmp_path / config.environment.id).iterdir())) == 3


def test_noise_that_cannot_be_drawn_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"^strategy openai_es cannot start: .* sigma up to 1e\+38"):
        prepare(make_scripted_config(tmp_path, sigma=1e38))
    assert list(tmp_path.iterdir()) == []


def test_a_new_run_is_there_after_a_power_cut(config, tmp_path, monkeypatch):
    """Each new folder is synced, with its own name in the folder above it, if that may be read."""
    synced = []

    def sync(folder):
        synced.append(folder)
        if folder == tmp_path:
            raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(run_folder, "sync_folder", sync)
    (run,) = prepare(change(config, folder=str(tmp_path / "new" / "weights")))
    os.close(run.lock)
    parent = run.folder.parent
    assert {tmp_path, tmp_path / "new", tmp_path / "new" / "weights"} <= set(synced)
    assert synced[-2:] == [parent / f".{run.folder.name}.{os.getpid()}.tmp", parent]
