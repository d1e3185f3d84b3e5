"""What makes the runs of tests short: a learning curve of one pixel, and evaluations that are cut."""

import base64
from pathlib import Path

from matplotlib.figure import Figure

from hebbes.files.atomic_file import write_atomically
from hebbes.reporting import learning_curve

ONE_PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR42mP4DwABAQEAHLCMmQAAAABJRU5ErkJggg=="
)
EVALUATION_CAP = "TEST_EVALUATION_CAP"
"""Environment variable of forked programs: the largest length of the episodes of evaluations in training."""
write_figure = learning_curve.write_figure
"""What draws all pixels of a learning curve."""


def write_one_pixel(figure: Figure, path: Path) -> None:
    """A PNG of one pixel instead of the figure: all pixels take longer than a short run."""
    write_atomically(path, ONE_PIXEL)
