"""TensorBoard: the columns of metrics.csv as scalars in event files, which tensorboardX writes without TensorBoard.

tensorboardX is not in requirements.txt, because only `--tensorboard` needs it.
"""

from collections.abc import Mapping
from importlib.util import find_spec
from math import isfinite
from pathlib import Path


def check_installed() -> None:
    """ValueError, which says what to install, if event files cannot be written."""
    if find_spec("tensorboardX") is None:
        raise ValueError("tensorboard needs the package tensorboardX; pip install 'tensorboardX~=2.6.5'")


class TensorboardWriter:
    """Writes scalars over generations to an event file of its own in a folder."""

    def __init__(self, folder: Path, generation: int) -> None:
        """Goes on behind `generation`: TensorBoard drops what older files in the folder have after it."""
        from tensorboardX import SummaryWriter  # optional

        self._writer = SummaryWriter(str(folder), purge_step=generation + 1)

    def write(self, row: Mapping[str, float]) -> None:
        """Adds one generation's row of metrics; numbers that are not finite are left out."""
        for name, value in row.items():
            if name != "generation" and isfinite(value):
                self._writer.add_scalar(name, float(value), int(row["generation"]))

    def close(self) -> None:
        """Writes what is pending."""
        self._writer.close()
