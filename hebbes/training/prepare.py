"""Prepares runs: makes the folder of a new run, or restores a run from its newest checkpoint."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

from hebbes.contracts.errors import describe_system_error, say
from hebbes.execution.provenance import find_conditions
from hebbes.files import checkpoint as checkpoints
from hebbes.files.atomic_file import write_atomically
from hebbes.files.checkpoint import Checkpoint, load_newest_checkpoint
from hebbes.files.folder_lock import lock_folder
from hebbes.files.option_file import CONFIG_YAML
from hebbes.recording.metrics import METRICS_CSV, cut_metrics
from hebbes.training.advice import TrainingError
from hebbes.training.assemble_run import assemble_run
from hebbes.training.config import TrainConfig
from hebbes.training.run_folder import (
    INIT_FROM,
    choose_folder,
    find_seed_folder,
    make_folder,
    make_folder_atomically,
    record_command,
    write_first_files,
    write_shared_files,
)
from hebbes.training.run_state import Run
from hebbes.training.runs import Runs
from hebbes.training.saved_runs import KEPT
from hebbes.training.starting_point import warn_of_other_environment


def prepare(config: TrainConfig, read_options: Callable[[Path], TrainConfig] | None = None) -> Runs:
    """The runs that the options ask for, new or resumed: one, or one for each seed. One of them is ready.

    ValueError if an option is wrong. Everything is checked before any file is written. Only the run of the first seed
    is checked, because the others differ in nothing but the seed. When several seeds are resumed, the ready run is that
    of the first seed that can go on, and `read_options` reads the options of a run that has begun from its folder.
    """
    if config.run.seeds == 1:
        run = _begin_run(config) if config.run.resume is None else _resume_run(config, Path(config.run.resume))
        return Runs(run, range(run.config.run.seed, run.config.run.seed + 1))
    seeds = range(config.run.seed, config.run.seed + config.run.seeds)
    if config.run.resume is None:
        first, top, lock = _begin_runs_of_seeds(config)
        return Runs(first, seeds, top=top, prepare_later=partial(_prepare_seed, config, top, read_options), lock=lock)
    top = Path(config.run.resume)
    lock, prepare_seed = lock_folder(top), partial(_prepare_seed, config, top, read_options)
    try:
        return Runs(_prepare_any(seeds, prepare_seed), seeds, top=top, prepare_later=prepare_seed, lock=lock)
    except BaseException:
        os.close(lock)
        raise


def prepare_in(config: TrainConfig, folder: Path) -> Run:
    """The run in exactly this folder: a new one, or the one that is there, with these options.

    No other process may make the folder at the same time. ValueError if an option is wrong.
    """
    if folder.exists():
        return _resume_run(config, folder)
    with _assemble(config, folder) as run:
        return replace(run, lock=make_folder_atomically(folder, partial(write_first_files, run=run)))


@contextmanager
def _assemble(config: TrainConfig, folder: Path, checkpoint: Checkpoint | None = None) -> Iterator[Run]:
    """The assembled run. If the block raises, nothing of it is left running.

    ValueError if what it is made of has changed the working folder, in which `folder` would be another one, or if its
    state cannot be saved.
    """
    before = None if folder.is_absolute() else Path.cwd()
    run = assemble_run(config, folder, checkpoint)
    try:
        if before is not None and Path.cwd() != before:
            raise ValueError(
                f"a simulator, or another part of the run, has changed the working folder to {Path.cwd()}; give "
                f"{'folder' if config.run.resume is None else 'resume'} as an absolute path"
            )
        yield run
    except TrainingError as error:  # a user's part has raised, or returned something wrong
        run.close()
        raise ValueError(str(error).partition("\n")[0]) from error
    except BaseException:
        run.close()
        raise


def _begin_run(config: TrainConfig) -> Run:
    """A new run in a new folder."""
    with _assemble(config, choose_folder(config)) as run:
        warn_of_other_environment(config, run.task.environment)
        folder, lock = make_folder(config, partial(write_first_files, run=run))
    return replace(run, folder=folder, lock=lock)


def _begin_runs_of_seeds(config: TrainConfig) -> tuple[Run, Path, int]:
    """The first new run of several seeds, the folder of all of them, and the descriptor that locks it."""
    with _assemble(config.change(run={"seeds": 1}), choose_folder(config)) as run:
        warn_of_other_environment(config, run.task.environment)

        def write_files(unfinished: Path) -> None:
            write_shared_files(unfinished, config)
            write_first_files(find_seed_folder(unfinished, config.run.seed), run)

        top, lock = make_folder(config, write_files)
        folder = find_seed_folder(top, config.run.seed)
        return replace(run, folder=folder, lock=lock_folder(folder)), top, lock


def _prepare_seed(config: TrainConfig, top: Path, read_options: Callable[[Path], TrainConfig] | None, seed: int) -> Run:
    """The run of one of the seeds in the folder `top`, new or resumed; `config` is that of all seeds."""
    folder = find_seed_folder(top, seed)
    if folder.exists():
        if read_options is None:
            raise ValueError(f"run folder {folder} exists already; give --resume {top}")
        return _resume_run(read_options(folder), folder)
    own = config.change(run={"seed": seed, "seeds": 1, "resume": None})
    start_file = top / INIT_FROM
    begun = own.change(run={"init_from": str(start_file)}) if start_file.exists() else own
    with _assemble(begun, folder) as assembled:
        run = replace(assembled, config=assembled.config.change(run={"init_from": config.run.init_from}))
        return replace(run, lock=make_folder_atomically(folder, partial(write_first_files, run=run)))


def _prepare_any(seeds: range, prepare_seed: Callable[[int], Run]) -> Run:
    """The run of the first seed that can be prepared; the first seed's error if none can."""
    errors: list[ValueError | TypeError | OSError] = []
    for seed in seeds:
        try:
            return prepare_seed(seed)
        except (ValueError, TypeError, OSError) as error:
            errors.append(error)
    raise errors[0]


def _resume_run(config: TrainConfig, folder: Path) -> Run:
    """The run of a folder, in the state of its newest checkpoint."""
    try:
        lock = lock_folder(folder)
        try:
            return replace(_restore_run(config, folder), lock=lock)
        except BaseException:
            os.close(lock)
            raise
    except KeyError as error:
        raise ValueError(f"the checkpoint in {folder} lacks {error}") from error
    except OSError as error:
        raise ValueError(f"cannot resume {folder}: {describe_system_error(error)}") from error


def _restore_run(config: TrainConfig, folder: Path) -> Run:
    if (folder / KEPT).exists() and not (folder / KEPT).is_dir():
        raise ValueError(f"{folder / KEPT} is not a folder; move it away")
    checkpoint, damaged = load_newest_checkpoint(folder / checkpoints.FOLDER)
    remarks = [f"{line}; an earlier checkpoint is used" for line in damaged]
    with _assemble(config, folder, checkpoint) as run:
        remarks += cut_metrics(folder / METRICS_CSV, run.trainer.unit, checkpoint.progress.units)
        for line in (*remarks, *_describe_differences(checkpoint, run)):
            say(line)
        text = run.config.format_as_yaml().encode()
        if not (folder / CONFIG_YAML).is_file() or (folder / CONFIG_YAML).read_bytes() != text:
            write_atomically(folder / CONFIG_YAML, text)  # its date tells when the run began
        record_command(folder)
        return run


def _describe_differences(checkpoint: Checkpoint, run: Run) -> list[str]:
    """At most one line: what differs between the conditions of the checkpoint and those of now."""
    then, now = checkpoint.conditions, find_conditions()
    found = [
        f"{name} was {then.get(name, 'absent')}, is {now.get(name, 'absent')}"
        for name in dict.fromkeys((*then, *now))
        if then.get(name) != now.get(name)
    ]
    if now["hebbes"].endswith("+"):
        found.append(f"hebbes {now['hebbes']} has files that differ from the commit")
    if not found:
        return []
    return [f"{run.folder}: the last bits may differ from those of an uninterrupted run: {'; '.join(found)}"]
