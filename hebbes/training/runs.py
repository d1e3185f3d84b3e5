"""The runs that one command line asks for: one, or one for each seed, each prepared when its turn comes."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

from hebbes.training.generation_loop import Run, TrainingError
from hebbes.training.run_folder import resume_command, seed_folder


class Runs:
    """Runs of consecutive seeds, of which only the first is prepared beforehand, and none is kept after its turn."""

    def __init__(
        self,
        first: Run,
        seeds: range,
        *,
        top: Path | None = None,
        later: Callable[[int], Run] | None = None,
        lock: int | None = None,
    ):
        """Of several seeds, `top` is the folder that has them all and `lock` a descriptor that holds it.

        `later` prepares each but the first; ValueError where that cannot be done.
        """
        self.seeds, self.top = seeds, top
        self._ready, self._later, self._lock = [first], later, lock
        self._folder = first.folder if top is None else top
        self._imports = first.config.trusted_modules

    def __iter__(self) -> Iterator[Run]:
        return map(self.prepare, self.seeds)

    @property
    def total(self) -> int:
        """How many they are."""
        return self.seeds.stop - self.seeds.start

    @property
    def resume_command(self) -> str:
        """The command line that goes on with all of them."""
        return resume_command(self._folder, self._imports)

    def folder_of(self, seed: int) -> Path:
        """The folder of one of the runs."""
        return self._folder if self.top is None else seed_folder(self.top, seed)

    def prepare(self, seed: int) -> Run:
        """The run of a seed, once; TrainingError where it cannot be prepared."""
        if self._later is None or (self._ready and seed == self.seeds.start):
            return self._ready.pop()
        try:
            return self._later(seed)
        except (ValueError, TypeError) as error:
            raise TrainingError(" ".join(str(error).split())) from error

    def close(self) -> None:
        """Lets other processes into the folder again."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None
