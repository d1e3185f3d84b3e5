"""Jobs of a sweep, each of which is a run. Several processes take them, one at a time, and do them side by side."""

import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol, TypeAlias

from hebbes.contracts.errors import join_lines
from hebbes.files.folder_lock import wait_for_lock
from hebbes.recording.console import Console
from hebbes.training.advice import DivergedError, TrainingError
from hebbes.training.config import TrainConfig
from hebbes.training.lifecycle import OnRow
from hebbes.training.prepare import prepare_in
from hebbes.training.run import TrainedRun, execute
from hebbes.training.run_state import Run

PAUSE = 1.0  # seconds between two looks at what other processes do
LINE_SECONDS = 60.0
"""Time between two lines on a run that goes on, where there is no view."""

Job: TypeAlias = Callable[[], None]
"""Does what a process has taken. Until it is called, its run's folder is locked."""


class Jobs(Protocol):
    """Jobs that processes share."""

    def take(self) -> Job | None:
        """A job that no other process has; None if there is none now. Called under the lock of the sweep."""

    @property
    def are_done(self) -> bool:
        """Whether all are done, by whatever process."""


def do_all(jobs: Jobs, folder: Path, console: Console) -> None:
    """Does jobs of the sweep in a folder until all are done, by this process or by others.

    If a process is lost, another one takes its job again.
    """
    is_waiting = False
    while True:
        with console.phase("preparing a run"), wait_for_lock(folder):
            job = jobs.take()
            are_done = job is None and jobs.are_done
        if are_done:
            return
        if job is not None:
            job()
        elif not is_waiting:
            console.print_message("waiting for runs of other processes")
        is_waiting = job is None
        if is_waiting:
            with console.phase("waiting for runs of other processes"):
                time.sleep(PAUSE)


def prepare_job(config: TrainConfig, folder: Path) -> Run:
    """The run in a folder of the sweep, new or resumed; TrainingError if it cannot be prepared."""
    try:
        folder.parent.mkdir(exist_ok=True)
        return prepare_in(config, folder)
    except (ValueError, TypeError, OSError) as error:
        raise TrainingError(f"{folder.name}: {join_lines(error)}") from error


@contextmanager
def hold_lock(run: Run) -> Iterator[None]:
    """Keeps a run's folder locked until the end of the context, after the run has ended too."""
    descriptor = None if run.lock is None else os.dup(run.lock)
    try:
        yield
    finally:
        if descriptor is not None:
            os.close(descriptor)


def execute_briefly(run: Run, name: str, console: Console, on_row: OnRow = lambda row: False) -> TrainedRun | None:
    """The run's outcome; None if it has diverged. It is shown in the view or, without one, by a line each minute.

    TrainingError or EngineError if something else stops it.
    """
    printed_at, most = time.monotonic(), run.config.training.max_env_steps

    def report(row: Mapping[str, float]) -> object:
        nonlocal printed_at
        if not console.is_live and time.monotonic() - printed_at >= LINE_SECONDS:
            printed_at = time.monotonic()
            console.print_message(f"{name:15} {row['env_steps']:,.0f} of {most:,} env steps")
        return on_row(row)

    try:
        with console.phase(name):
            return execute(run, report, console.make_silent())
    except DivergedError:
        return None
