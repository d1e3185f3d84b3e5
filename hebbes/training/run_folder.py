"""The folder of a run: makes it atomically, locks it for one process, and keeps its files up to date."""

import errno
import fcntl
import glob
import itertools
import os
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from hebbes.contracts.trainer import Snapshot
from hebbes.execution.provenance import find_conditions
from hebbes.files import checkpoint as checkpoints
from hebbes.files.atomic_file import delete_leftovers, sync_folder, write_atomically
from hebbes.files.checkpoint import Checkpoint, save_checkpoint
from hebbes.files.folder_lock import lock_folder
from hebbes.files.option_file import CONFIG_YAML, read_yaml
from hebbes.files.policy_file import SavedPolicy, save_policy
from hebbes.files.zoo import find_in_zoo
from hebbes.recording.metrics import MetricsWriter
from hebbes.training.config import TrainConfig
from hebbes.training.owners import INCIDENTAL
from hebbes.training.printed_commands import format_command, hide_passwords
from hebbes.training.run_state import Run, capture_checkpoint
from hebbes.training.saved_runs import BEST, KEPT, LATEST

COMMAND_TXT = "command.txt"
"""The file of a run's command lines, with commit and versions."""

MOST_DUE = 10
"""Largest number of kept policies that wait until they can be written."""

INIT_FROM = "init_from.dat"
"""Copy of the file `--init_from` for several seeds. The file itself may change before the last run starts."""


def choose_folder(config: TrainConfig) -> Path:
    """FOLDER/ENVIRONMENT/RUN_NAME, or one named after what searches, seed and time; ValueError if it exists already."""
    parent = find_parent(config)
    if config.run.run_name is None:
        method = (config.choices.method or config.trainer).replace(":", ".")  # scp takes HOST:PATH for a place
        stem = f"{method}-seed{config.run.seed}-{datetime.now(UTC):%Y%m%d-%H%M%S}"
        names = itertools.chain([stem], (f"{stem}-{number}" for number in itertools.count(2)))
        return next(parent / name for name in names if not (parent / name).exists())
    folder = parent / config.run.run_name
    if folder.exists():
        raise _make_exists_error(folder)
    return folder


def find_parent(config: TrainConfig) -> Path:
    """The folder of all runs in the environment. ValueError for the home of a user that does not exist."""
    try:
        return Path(config.run.folder).expanduser() / config.environment.id.replace("/", "_")
    except RuntimeError as error:
        raise ValueError(f"folder {config.run.folder}: no such user") from error


def make_folder(config: TrainConfig, write_files: Callable[[Path], None]) -> tuple[Path, int]:
    """Makes the folder that `choose_folder` names; returns it and the descriptor that locks it.

    `write_files` writes the first files into the folder that it is given. Processes that make folders in the same
    parent wait for each other. ValueError if the folder exists already.
    """
    parent = find_parent(config)
    with _name_folder_in_errors(parent):
        _check_is_outside_runs(config.run.folder, parent)
        _make_folders(parent)
        parent_lock = os.open(parent, os.O_RDONLY)
    try:
        with suppress(OSError):  # some network file systems have no locks
            fcntl.flock(parent_lock, fcntl.LOCK_EX)
        folder = choose_folder(config)
        return folder, make_folder_atomically(folder, write_files)
    finally:
        os.close(parent_lock)


def _make_folders(folder: Path) -> None:
    """Makes a folder and those above it that are missing. They are still there after a power cut."""
    missing = [each for each in (folder, *folder.parents) if not each.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    for each in missing:
        with suppress(PermissionError):  # one that may be written to and not read
            sync_folder(each.parent)


def _check_is_outside_runs(named: str, parent: Path) -> None:
    """ValueError if the parent of new runs, which `folder` has named, lies in the folder of a run."""
    for folder in (parent.absolute(), *parent.absolute().parents):
        if (folder / CONFIG_YAML).exists() and (folder / checkpoints.FOLDER).is_dir():
            raise ValueError(f"folder {named} is within the run {folder}, where no program would find it")


def make_folder_atomically(folder: Path, write_files: Callable[[Path], None]) -> int:
    """Makes a folder with all its first files, or none; returns the descriptor that locks it, see `lock_folder`.

    No other process may make a folder of this name at the same time. ValueError if it cannot be made.
    """
    unfinished = folder.with_name(f".{folder.name}.{os.getpid()}.tmp")
    lock = None
    with _name_folder_in_errors(folder):
        for leftover in folder.parent.glob(f".{glob.escape(folder.name)}.*.tmp"):
            shutil.rmtree(leftover, ignore_errors=True)  # left by a process that was killed here
        try:
            unfinished.mkdir()
            lock = lock_folder(unfinished)
            write_files(unfinished)
            sync_folder(unfinished)
            unfinished.rename(folder)
            sync_folder(folder.parent)
        except BaseException:
            shutil.rmtree(unfinished, ignore_errors=True)
            if lock is not None:
                os.close(lock)
            raise
    return lock


@contextmanager
def _name_folder_in_errors(folder: Path) -> Iterator[None]:
    """Turns an OSError into a ValueError that names the folder."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.EEXIST, errno.ENOTEMPTY) and folder.exists():
            raise _make_exists_error(folder) from error
        raise ValueError(f"cannot write to run folder {folder}: {error.strerror}") from error


def _make_exists_error(folder: Path) -> ValueError:
    return ValueError(f"run folder {folder} exists already; --resume it, or choose another --run_name or --folder")


def write_first_files(folder: Path, run: Run) -> None:
    """Writes the files of a run that has not started yet, into a folder that may still have another name."""
    (folder / checkpoints.FOLDER).mkdir(parents=True)
    write_atomically(folder / CONFIG_YAML, run.config.format_as_yaml().encode())
    save_checkpoint(folder / checkpoints.FOLDER, capture_checkpoint(run, run.progress, run.conditions))
    record_command(folder)


def write_shared_files(folder: Path, config: TrainConfig) -> None:
    """Writes what the runs of several seeds share: their options, and a copy of the file that they start from."""
    write_atomically(folder / CONFIG_YAML, config.format_as_yaml().encode())
    if config.run.init_from is not None:
        write_atomically(folder / INIT_FROM, find_in_zoo(Path(config.run.init_from)).read_bytes())


def find_seed_folder(top: Path, seed: int) -> Path:
    """The folder of one of several seeds."""
    return top / f"seed{seed}"


def _explain_no_run(folder: Path) -> str:
    """Why this is not the folder of a run, and which folders nearby are."""
    if not folder.exists():
        return "which is not there"
    around = [each for each in folder.parents[:2] if (each / checkpoints.FOLDER).is_dir()]
    if folder.is_file() or around:
        return f"{'a file' if folder.is_file() else 'which is inside one'}; give {(around or folder.parents)[0]}"
    inside = sorted(each.parent.name for each in folder.glob(f"*/{checkpoints.FOLDER}"))
    runs = f"; the runs in it are {', '.join(inside[:5])}{', ...' * (len(inside) > 5)}" if inside else ""
    return f"which has no checkpoint in it{runs}"


def read_seeds(folder: Path) -> range | None:
    """The seeds of the runs in a folder, from its config.yaml; None for the folder of a single run.

    ValueError if it is the folder of neither, or if a run in it is damaged.
    """
    if (folder / checkpoints.FOLDER).is_dir():
        return None
    neither = ValueError(f"resume must name the folder of a run, got {folder}, {_explain_no_run(folder)}")
    if not (folder / CONFIG_YAML).is_file():
        raise neither
    try:
        options = read_yaml(folder / CONFIG_YAML)
        seeds = range(options["seed"], options["seed"] + options["seeds"])
    except (ValueError, TypeError, LookupError) as error:
        raise ValueError(f"{folder / CONFIG_YAML} does not say which seeds were asked for") from error
    if not find_seed_folders(folder, seeds):
        raise neither
    if damaged := [path.name for path in find_seed_folders(folder, seeds) if not (path / checkpoints.FOLDER).is_dir()]:
        raise ValueError(f"resume {folder}: {', '.join(damaged)} has no checkpoint; move it away to begin it anew")
    return seeds


def find_seed_folders(top: Path, seeds: range) -> list[Path]:
    """The folders of those seeds that have one, in order. There may be too many seeds to test each."""
    numbers = (path.name.removeprefix("seed") for path in top.glob("seed*"))
    found = sorted(int(number) for number in numbers if number.isdecimal() and int(number) in seeds)
    return [find_seed_folder(top, seed) for seed in found if find_seed_folder(top, seed).is_dir()]


def record_command(folder: Path) -> None:
    """Adds this command line, the commit, the package versions and the processor to command.txt."""
    facts = "".join(f"{name} {value}\n" for name, value in find_conditions().items())
    command = format_command("", *map(hide_passwords, sys.argv[1:]))
    with (folder / COMMAND_TXT).open("a", encoding="utf-8", errors="surrogateescape") as file:  # as the system has them
        file.write(f"{command}\n{facts}")


class RunFiles:
    """Writes the checkpoints of a run and, after each, the policy files that are made from it."""

    def __init__(self, run: Run):
        self._run = run
        self._options = run.config.list_used_options(without=INCIDENTAL)
        self._best: Snapshot | None = None
        self._due: dict[int, tuple[Snapshot, Mapping[str, str]]] = {}  # by unit: to be kept, and not yet written
        for folder in (run.folder, run.folder / KEPT):
            delete_leftovers(folder)

    def save(self, checkpoint: Checkpoint, metrics: MetricsWriter) -> None:
        """Writes rows, the checkpoint, then policies, so that no policy is ever newer; OSError if a write fails.

        Kept policies of earlier units that could not be written are tried again.
        """
        units = checkpoint.progress.units
        if any(units % every == 0 for every in self._run.config.run.keep_intervals):
            self._due[units] = checkpoint.latest, checkpoint.conditions
            self._due = dict([*self._due.items()][-MOST_DUE:])
        self._run.check_folder()
        metrics.sync()  # no checkpoint has more units than there are rows
        save_checkpoint(self._run.folder / checkpoints.FOLDER, checkpoint)
        best = checkpoint.progress.best
        if best is not None and best is not self._best:
            self._save_policy(BEST, best, checkpoint.conditions)
            self._best = best
        if units:
            self._save_policy(LATEST, checkpoint.latest, checkpoint.conditions)
        errors = []
        for due, (snapshot, conditions) in list(self._due.items()):
            try:
                _make_folders(self._run.folder / KEPT)
                self._save_policy(f"{KEPT}/{due:08}.dat", snapshot, conditions)
                del self._due[due]
            except OSError as error:
                errors.append(error)
        if errors:
            raise errors[0]

    def _save_policy(self, name: str, snapshot: Snapshot, conditions: Mapping[str, str]) -> None:
        config, task = self._run.config, self._run.task
        provenance: dict[str, Any] = {
            "seed": config.run.seed,
            "unit": self._run.trainer.unit,
            self._run.trainer.unit: snapshot.units,
            "env_steps": snapshot.env_steps,
            "score": snapshot.score,
            "score_episodes": config.training.eval_episodes,
            "options": self._options,
            **({} if config.run.init_from is None else {"init_from": config.run.init_from}),
            **conditions,
        }
        policy, head, arrays = task.agent.policy, task.agent.action_head, (snapshot.weights, snapshot.buffers)
        saved = SavedPolicy(policy, config.choices.policy, *arrays, head, task.environment, provenance)
        save_policy(self._run.folder / name, saved)
