"""TensorBoard's event files, read back, and a disk that is full."""

import resource
import signal
from contextlib import contextmanager
from pathlib import Path

from tensorboardX.proto.event_pb2 import Event


def read_events(folder: Path):
    """Every event in a folder. A record is an 8-byte length, its 4-byte checksum, the event, its 4-byte checksum."""
    found = []
    for path in sorted(folder.glob("events.*"), key=lambda each: each.stat().st_mtime_ns):
        data = path.read_bytes()
        while data:
            size = int.from_bytes(data[:8], "little")
            found.append(Event.FromString(data[12 : 12 + size]))
            data = data[16 + size :]
    return found


def list_scalars(found):
    """Generation, name and number of each scalar."""
    return [(event.step, value.tag, value.simple_value) for event in found for value in event.summary.value]


@contextmanager
def limit_file_size(size):
    """No file can grow beyond this many bytes."""
    limits, handler = resource.getrlimit(resource.RLIMIT_FSIZE), signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, handler)
