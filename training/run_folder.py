"""The folder of a run: made whole or not at all, held by one process at a time, its files kept up to date."""

import fcntl
import glob
import itertools
import os
import shlex
import shutil
import sys
import tempfile
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from reporting.atomic_file import sweep, sync_folder, write_atomically
from rollouts.chunks import Task
from training import checkpoint as checkpoints
from training.checkpoint import Checkpoint, Snapshot, save_checkpoint
from training.config import TrainConfig
from training.machine import conditions
from training.option_file import read_yaml
from training.policy_file import SavedPolicy, save_policy
from training.unused_options import as_yaml

CONFIG_YAML = "config.yaml"


def chosen_folder(config: TrainConfig) -> Path:
    """FOLDER/ENVIRONMENT/RUN_NAME, or one named after strategy, seed and time; ValueError if it is there already."""
    parent = Path(config.folder).expanduser() / config.environment.replace("/", "_")
    if config.run_name is None:
        stem = f"{config.strategy}-seed{config.seed}-{datetime.now(UTC):%Y%m%d-%H%M%S}"
        names = itertools.chain([stem], (f"{stem}-{number}" for number in itertools.count(2)))
        return next(parent / name for name in names if not (parent / name).exists())
    folder = parent / config.run_name
    if folder.exists():
        raise ValueError(f"run folder {folder} exists already; --resume it, or choose another --run_name or --folder")
    return folder


def make_folder(folder: Path, config: TrainConfig, starts: Mapping[str, tuple[TrainConfig, Checkpoint]]) -> None:
    """Makes a folder with one run in each subfolder named, at its start; ValueError if that cannot be done.

    `config` asked for them all.
    """
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        for leftover in folder.parent.glob(f".{glob.escape(folder.name)}.*.tmp"):
            shutil.rmtree(leftover, ignore_errors=True)  # of a process that was killed in here
        unfinished = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", suffix=".tmp", dir=folder.parent))
        try:
            (unfinished / CONFIG_YAML).write_text(as_yaml(config))
            for name, (own, checkpoint) in starts.items():
                (unfinished / name / checkpoints.FOLDER).mkdir(parents=True)
                (unfinished / name / CONFIG_YAML).write_text(as_yaml(own))
                save_checkpoint(unfinished / name / checkpoints.FOLDER, checkpoint)
                note_command(unfinished / name)
            unfinished.chmod(0o755)
            unfinished.rename(folder)
            sync_folder(folder.parent)
        except BaseException:
            shutil.rmtree(unfinished, ignore_errors=True)
            raise
    except OSError as error:
        raise ValueError(f"cannot write to run folder {folder}: {error.strerror}") from error


def runs_in(folder: Path) -> list[Path]:
    """The folder of each run that `--resume FOLDER` means: itself, or those of the seeds that its config.yaml names."""
    if (folder / checkpoints.FOLDER).is_dir():
        return [folder]
    if not (folder / CONFIG_YAML).is_file():
        raise ValueError(f"resume must name the folder of a run, got {folder}, which has no checkpoint in it")
    try:
        asked = read_yaml(folder / CONFIG_YAML)
        found = [folder / f"seed{asked['seed'] + number}" for number in range(asked["seeds"])]
    except (ValueError, TypeError, LookupError) as error:
        raise ValueError(f"{folder / CONFIG_YAML} does not say which seeds were asked for") from error
    if missing := [path.name for path in found if not (path / checkpoints.FOLDER).is_dir()]:
        raise ValueError(f"resume {folder}: {', '.join(missing)} has no checkpoint; resume the others singly")
    return found


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
    return shlex.join(["python", sys.argv[0], "--resume", str(folder), *needed])


def update_config(folder: Path, config: TrainConfig) -> None:
    """Makes config.yaml say what the run now goes on with."""
    write_atomically(folder / CONFIG_YAML, as_yaml(config).encode())
