"""The folder of a run: made whole or not at all, held by one process at a time, its files kept up to date."""

import errno
import fcntl
import glob
import itertools
import os
import shlex
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from hebbes.execution.chunks import Task
from hebbes.files import checkpoint as checkpoints
from hebbes.files.atomic_file import sweep, sync_folder, write_atomically
from hebbes.files.checkpoint import Checkpoint, Snapshot, save_checkpoint
from hebbes.files.option_file import read_yaml
from hebbes.files.policy_file import SavedPolicy, save_policy
from hebbes.training.config import TrainConfig
from hebbes.training.provenance import conditions
from hebbes.training.unused_options import as_yaml

CONFIG_YAML = "config.yaml"
INIT_FROM = "init_from.dat"
"""Where the runs of several seeds have `--init_from`, which may change before the turn of the last of them."""


def chosen_folder(config: TrainConfig) -> Path:
    """FOLDER/ENVIRONMENT/RUN_NAME, or one named after strategy, seed and time; ValueError if it is there already."""
    parent = _parent(config)
    if config.run_name is None:
        stem = f"{config.strategy}-seed{config.seed}-{datetime.now(UTC):%Y%m%d-%H%M%S}"
        names = itertools.chain([stem], (f"{stem}-{number}" for number in itertools.count(2)))
        return next(parent / name for name in names if not (parent / name).exists())
    folder = parent / config.run_name
    if folder.exists():
        raise _exists_already(folder)
    return folder


def _parent(config: TrainConfig) -> Path:
    return Path(config.folder).expanduser() / config.environment.replace("/", "_")


def make_folder(config: TrainConfig, fill: Callable[[Path], None]) -> tuple[Path, int]:
    """Makes the folder that `chosen_folder` names, with what `fill` writes into it; the folder, and what holds it.

    Two processes in one parent do this one after the other. ValueError if the folder is there already.
    """
    parent = _parent(config)
    with _told_of(parent):
        parent.mkdir(parents=True, exist_ok=True)
        alone = os.open(parent, os.O_RDONLY)
    try:
        with suppress(OSError):  # some network file systems have no locks
            fcntl.flock(alone, fcntl.LOCK_EX)
        folder = chosen_folder(config)
        return folder, make_whole(folder, fill)
    finally:
        os.close(alone)


def make_whole(folder: Path, fill: Callable[[Path], None]) -> int:
    """Makes a folder with what `fill` writes into it, whole or not at all; the descriptor that holds it, as in `hold`.

    Nobody else may be making one of that name. ValueError if it cannot be made.
    """
    unfinished = folder.with_name(f".{folder.name}.{os.getpid()}.tmp")
    lock = None
    with _told_of(folder):
        for leftover in folder.parent.glob(f".{glob.escape(folder.name)}.*.tmp"):
            shutil.rmtree(leftover, ignore_errors=True)  # of a process that was killed in here
        try:
            unfinished.mkdir()
            lock = hold(unfinished)
            fill(unfinished)
            unfinished.rename(folder)
            sync_folder(folder.parent)
        except BaseException:
            shutil.rmtree(unfinished, ignore_errors=True)
            if lock is not None:
                os.close(lock)
            raise
    return lock


@contextmanager
def _told_of(folder: Path) -> Iterator[None]:
    """Turns an OSError into a ValueError that names the folder."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.EEXIST, errno.ENOTEMPTY) and folder.exists():
            raise _exists_already(folder) from error
        raise ValueError(f"cannot write to run folder {folder}: {error.strerror}") from error


def _exists_already(folder: Path) -> ValueError:
    return ValueError(f"run folder {folder} exists already; --resume it, or choose another --run_name or --folder")


def write_start(folder: Path, config: TrainConfig, start: Checkpoint) -> None:
    """Writes what is in the folder of a run that has done nothing yet."""
    (folder / checkpoints.FOLDER).mkdir(parents=True)
    (folder / CONFIG_YAML).write_text(as_yaml(config))
    save_checkpoint(folder / checkpoints.FOLDER, start)
    note_command(folder)


def write_top(folder: Path, config: TrainConfig) -> None:
    """Writes what the runs of several seeds share: their options, and a copy of the file that they start from."""
    (folder / CONFIG_YAML).write_text(as_yaml(config))
    if config.init_from is not None:
        shutil.copyfile(config.init_from, folder / INIT_FROM)


def seed_folder(top: Path, seed: int) -> Path:
    """The folder of one of several seeds."""
    return top / f"seed{seed}"


def _no_run(folder: Path) -> str:
    """Why this is not the folder of a run, and where one is."""
    if folder.is_file():
        return f"a file; give {folder.parent}"
    inside = sorted(each.parent.name for each in folder.glob(f"*/{checkpoints.FOLDER}"))
    runs = f"; the runs in it are {', '.join(inside[:5])}{', ...' * (len(inside) > 5)}" if inside else ""
    return f"which has no checkpoint in it{runs}"


def seeds_in(folder: Path) -> range | None:
    """The seeds whose runs `--resume FOLDER` means, by its config.yaml; None for the folder of a single run.

    ValueError for one that is neither, or in which a run is damaged.
    """
    if (folder / checkpoints.FOLDER).is_dir():
        return None
    neither = ValueError(f"resume must name the folder of a run, got {folder}, {_no_run(folder)}")
    if not (folder / CONFIG_YAML).is_file():
        raise neither
    try:
        asked = read_yaml(folder / CONFIG_YAML)
        seeds = range(asked["seed"], asked["seed"] + asked["seeds"])
    except (ValueError, TypeError, LookupError) as error:
        raise ValueError(f"{folder / CONFIG_YAML} does not say which seeds were asked for") from error
    if not _begun(folder, seeds):
        raise neither
    if damaged := [path.name for path in _begun(folder, seeds) if not (path / checkpoints.FOLDER).is_dir()]:
        raise ValueError(f"resume {folder}: {', '.join(damaged)} has no checkpoint; move it away to begin it anew")
    return seeds


def first_begun(top: Path, seeds: range) -> Path:
    """The folder of the first of the seeds that have begun."""
    return _begun(top, seeds)[0]


def _begun(top: Path, seeds: range) -> list[Path]:
    """The folders of those seeds that have one, in order; the seeds may be too many to be looked for singly."""
    numbers = (path.name.removeprefix("seed") for path in top.glob("seed*"))
    found = sorted(int(number) for number in numbers if number.isdecimal() and int(number) in seeds)
    return [seed_folder(top, seed) for seed in found if seed_folder(top, seed).is_dir()]


def hold(folder: Path) -> int:
    """Keeps other processes from writing to a run until this one ends; ValueError if one does so already.

    Returns the descriptor that holds it.
    """
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        raise ValueError(f"run folder {folder} is in use by another process") from None
    except OSError as error:  # some network file systems have no locks
        print(f"{folder} cannot be locked ({error.strerror}); see that no other process resumes it", file=sys.stderr)
    return descriptor


def note_command(folder: Path) -> None:
    """Adds this command line, the commit, the package versions and the processor to command.txt."""
    facts = "".join(f"{name} {value}\n" for name, value in conditions().items())
    with (folder / "command.txt").open("a") as file:
        file.write(f"{shlex.join(sys.argv)}\n{facts}")


class RunFiles:
    """Keeps what can be made from a checkpoint as new as the checkpoint itself."""

    def __init__(self, folder: Path, task: Task, config: TrainConfig):
        self._folder, self._task, self._config = folder, task, config
        self._best: Snapshot | None = None
        sweep(folder)

    def save(self, checkpoint: Checkpoint) -> None:
        """Writes the checkpoint first, so that no policy file is ever ahead of it; OSError if the disk refuses."""
        save_checkpoint(self._folder / checkpoints.FOLDER, checkpoint)
        best = checkpoint.progress.best
        if best is not None and best is not self._best:
            self._save_policy("best.dat", best, checkpoint.conditions)
            self._best = best
        if checkpoint.progress.generation:
            self._save_policy("latest.dat", checkpoint.latest, checkpoint.conditions)

    def _save_policy(self, name: str, snapshot: Snapshot, made_under: Mapping[str, str]) -> None:
        provenance: dict[str, Any] = {
            "seed": self._config.seed,
            "generation": snapshot.generation,
            "env_steps": snapshot.env_steps,
            "score": snapshot.score,
            "score_episodes": self._config.eval_episodes,
            **made_under,
        }
        save_policy(
            self._folder / name,
            SavedPolicy(
                policy=self._task.agent.policy,
                policy_name=self._config.policy,
                weights=snapshot.weights,
                buffers=snapshot.buffers,
                action_head=self._task.agent.action_head,
                environment=self._task.environment,
                provenance=provenance,
            ),
        )


def resume_command(folder: Path, imports: Sequence[str]) -> str:
    """The command line that goes on with a run, `imports` being the modules that it needs."""
    needed = ["--import", *dict.fromkeys(imports)] if imports else []
    program = ["python", sys.argv[0]] if sys.argv[0].endswith(".py") else sys.argv[0].split()
    return shlex.join([*program, "--resume", str(folder), *needed])


def update_config(folder: Path, config: TrainConfig) -> None:
    """Makes config.yaml say what the run now goes on with."""
    write_atomically(folder / CONFIG_YAML, as_yaml(config).encode())
