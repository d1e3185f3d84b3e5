"""Writes the columns of metrics.csv as scalars to event files for TensorBoard, without needing TensorBoard itself.

The package tensorboardX knows the format. It is not in requirements.txt, because only `--tensorboard` needs it. Its own
writer is not used: when the disk is full, its thread dies, and the caller waits forever.
"""

import socket
import struct
import time
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from math import isfinite
from typing import Any, ClassVar

from hebbes.files.appended_file import AppendedFile
from hebbes.recording.base import RunLogger


@dataclass(eq=False)
class TensorBoard(RunLogger):
    """Writes one scalar for each metric of each row to a new event file in the run's folder."""

    switch: ClassVar[str] = "also write the metrics as TensorBoard events (needs tensorboardX)"

    def __post_init__(self) -> None:
        """Opens the file. TensorBoard drops the rows after `units` of older files in the folder."""
        super().__post_init__()
        from tensorboardX.proto.event_pb2 import SessionLog  # optional

        name = f"events.out.tfevents.{time.time():.0f}.{socket.gethostname()}.{time.monotonic_ns()}"
        self._file = AppendedFile(self.folder / name)
        start = {"step": self.units + 1, "session_log": SessionLog(status=SessionLog.START)}
        self._file.write(_make_record(file_version="brain.Event:2") + _make_record(**start))

    @classmethod
    def check_installed(cls) -> None:
        """Raises ValueError, which says what to install, if event files cannot be written."""
        if find_spec("tensorboardX") is None:
            raise ValueError("tensorboard needs the package tensorboardX; pip install 'tensorboardX~=2.6.5'")

    def write(self, row: Mapping[str, float]) -> None:
        """Adds a row of metrics, without the numbers that are not finite.

        Raises OSError if the disk refuses the row. It is then written with the next one.
        """
        from tensorboardX.proto.summary_pb2 import Summary  # optional

        (_, step), *metrics = row.items()
        finite = {name: value for name, value in metrics if isfinite(value)}
        scalars = [Summary.Value(tag=name, simple_value=float(value)) for name, value in finite.items()]
        self._file.write(_make_record(step=int(step), summary=Summary(value=scalars)))

    def close(self) -> None:
        """Writes pending rows and closes the file. Raises OSError if the disk still refuses them."""
        try:
            self._file.sync()
        finally:
            self._file.close()


def _make_record(**what: Any) -> bytes:
    """The bytes of one event: its length, the length's checksum, the event, its checksum."""
    from tensorboardX.proto.event_pb2 import Event  # optional
    from tensorboardX.record_writer import masked_crc32c

    event = Event(wall_time=time.time(), **what).SerializeToString()
    size = struct.pack("<Q", len(event))
    checks = [struct.pack("<I", masked_crc32c(data)) for data in (size, event)]
    return size + checks[0] + event + checks[1]
