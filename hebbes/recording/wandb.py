"""Writes the columns of metrics.csv to Weights & Biases: online, or offline to files that `wandb sync` uploads later.

The package wandb chooses between them as its documentation says, for example by the environment variable WANDB_MODE.
Offline needs no account. Its processes start when the run starts, and only this process writes to them.
"""

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib.util import find_spec
from math import isfinite
from typing import Any, ClassVar
from uuid import uuid4

from hebbes.contracts.errors import describe_error, join_lines
from hebbes.contracts.option import option
from hebbes.files.atomic_file import write_atomically
from hebbes.files.option_file import CONFIG_YAML, read_yaml
from hebbes.recording.base import RunLogger

ID_FILE = "wandb_id.txt"
"""File in the run's folder with the run's id at Weights & Biases, so that a resume continues the same run there."""
MEDIA = {".png": "Image", ".gif": "Video", ".mp4": "Video"}
"""Suffixes of files in the run's folder that are uploaded at the end -> wandb's class for them."""
INIT_SECONDS = 30.0
"""Time for the server to answer when a run starts."""


@dataclass(eq=False)
class WandB(RunLogger):
    """A run of Weights & Biases with the run's options, a step for each row, and at the end its figures and videos."""

    switch: ClassVar[str] = "also log to Weights & Biases (needs wandb); WANDB_MODE=offline needs no account"

    wandb_project: str = option("hebbes", "project of Weights & Biases")

    def __post_init__(self) -> None:
        """Starts the run, or continues it."""
        super().__post_init__()
        import wandb  # optional

        quiet = wandb.Settings(console="off", silent=True, x_disable_stats=True, init_timeout=INIT_SECONDS)
        options = read_yaml(self.folder / CONFIG_YAML)
        try:
            with _keep_hooks():
                self._run: Any = wandb.init(
                    project=self.wandb_project,
                    id=self._find_id(),
                    name="/".join(self.folder.parts[-2:]),
                    config=options,
                    dir=self.folder,
                    resume="allow",
                    reinit="create_new",  # the caller may have a run of its own
                    settings=quiet,
                )
        except wandb.errors.Error as error:
            raise ValueError(join_lines(error)) from error

    @classmethod
    def check_installed(cls) -> None:
        """Raises ValueError, which says what to do, if wandb is missing, or online without an account."""
        found = find_spec("wandb")
        if found is None or found.origin is None:  # without an origin it is a folder of that name, such as wandb's own
            raise ValueError("wandb needs the package wandb; pip install 'wandb~=0.31.0'")
        import wandb

        try:
            with _keep_hooks():
                is_online = wandb.setup().settings.mode in ("online", "shared")
                has_account = not is_online or wandb.login(prompt=False, verify=False)
        except wandb.errors.Error as error:
            raise ValueError(join_lines(error)) from error
        if not has_account:
            raise ValueError("wandb has no account here; run `wandb login`, or set WANDB_MODE=offline")

    def write(self, row: Mapping[str, float]) -> None:
        """Adds a row of metrics, without the numbers that are not finite. The first column is the step.

        A row that the run has already, because training was resumed from an earlier checkpoint, is not added again.
        Raises RuntimeError if the process of wandb has gone: it keeps no rows, so no later call could write them.
        """
        step = next(iter(row.values()))
        try:
            self._run.log({name: value for name, value in row.items() if isfinite(value)}, step=int(step))
        except OSError as error:
            raise RuntimeError(f"its process does not answer: {describe_error(error)}") from error

    def close(self) -> None:
        """Uploads figures and videos of the run's folder, and ends the run."""
        import wandb  # optional

        try:
            media = [path for path in sorted(self.folder.iterdir()) if path.suffix in MEDIA]
            self._run.log({path.stem: getattr(wandb, MEDIA[path.suffix])(str(path)) for path in media})
        finally:
            self._run.finish()

    def _find_id(self) -> str:
        path = self.folder / ID_FILE
        with suppress(FileNotFoundError):
            return path.read_text().strip()
        write_atomically(path, f"{uuid4().hex}\n".encode())
        return self._find_id()


@contextmanager
def _keep_hooks() -> Iterator[None]:
    """Keeps wandb from replacing `sys.exit` and `sys.excepthook`. It would see only how the process ends."""
    hooks = sys.exit, sys.excepthook
    try:
        yield
    finally:
        sys.exit, sys.excepthook = hooks
