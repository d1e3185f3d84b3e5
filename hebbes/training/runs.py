"""The runs that one command line asks for: one, or one for each seed, prepared one at a time."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

from hebbes.contracts.errors import join_lines
from hebbes.training.advice import TrainingError
from hebbes.training.printed_commands import format_command
from hebbes.training.run_folder import find_seed_folder
from hebbes.training.run_state import Run


class Runs:
    """Runs of consecutive seeds. Only one is prepared in advance, and none is kept once it was handed out."""

    def __init__(
        self,
        ready: Run,
        seeds: range,
        *,
        top: Path | None = None,
        prepare_later: Callable[[int], Run] | None = None,
        lock: int | None = None,
    ):
        """With several seeds, `top` is the folder of all runs, and `lock` the descriptor that locks it.

        `ready` is the run of any of the seeds. `prepare_later` prepares that of another one, or raises ValueError,
        TypeError or OSError.
        """
        self.seeds, self.top = seeds, top
        self._ready, self._prepare_later, self._lock = {ready.config.run.seed: ready}, prepare_later, lock
        self._folder = ready.folder if top is None else top
        self._imports = ready.config.trusted_modules

    def __iter__(self) -> Iterator[Run]:
        return map(self.prepare, self.seeds)

    @property
    def resume_command(self) -> str:
        """The command line that resumes all of them."""
        return format_command("", "--resume", str(self._folder), imports=self._imports)

    def find_folder(self, seed: int) -> Path:
        """The folder of one of the runs."""
        return self._folder if self.top is None else find_seed_folder(self.top, seed)

    def prepare(self, seed: int) -> Run:
        """The run of a seed, which can be had only once; TrainingError if it cannot be prepared."""
        if self._prepare_later is None or seed in self._ready:
            return self._ready.pop(seed)
        try:
            return self._prepare_later(seed)
        except (ValueError, TypeError, OSError) as error:
            raise TrainingError(join_lines(error)) from error

    def close(self) -> None:
        """Unlocks the folder of several seeds."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None
