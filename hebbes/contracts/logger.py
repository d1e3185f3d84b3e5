"""Logger: records the metrics of a run, one row for each unit of training."""

from collections.abc import Mapping
from typing import Protocol


class Logger(Protocol):
    """Takes the rows of one run as they come.

    It is made at the start of the run with `folder`, the run's folder, and `units`, the number of generations (or other
    units) after which it continues, and with its options. `hebbes.recording.base.RunLogger` has these two as fields.
    """

    def write(self, row: Mapping[str, float]) -> None:
        """Records a row of metrics, whose first column counts the rows; `hebbes.recording.metrics.METRICS` lists names.

        Values may be NaN. OSError if the row could not be recorded now. The logger then keeps it, and writes it with
        the next row or when it is closed. After any other exception the logger is closed and gets no more rows.
        """

    def close(self) -> None:
        """Records the rows that it has kept, and frees what it holds. Any exception means that rows are lost."""
