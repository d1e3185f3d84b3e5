"""Segments: files of large arrays that several checkpoints name by their checksum, each written once."""

import hashlib
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path

import numpy as np

from hebbes.contracts.trainer import MAX_SEGMENT_BYTES, Segment
from hebbes.files.atomic_file import write_atomically
from hebbes.files.checksummed_file import MAX_HEADER_BYTES, decode, encode, peek
from hebbes.files.weight_file import open_regular_file

MAX_FILE_BYTES = MAX_SEGMENT_BYTES + MAX_HEADER_BYTES + 8
_SUFFIX = ".segment"


def write_segments(folder: Path, segments: Iterable[Segment]) -> None:
    """Writes the segments that have no file yet, synced, under the names of their checksums."""
    for segment in segments:
        if segment.sha256 and (folder / f"{segment.sha256}{_SUFFIX}").exists():
            continue
        data = encode("segment", {}, segment.arrays)
        name = hashlib.sha256(data).hexdigest()
        write_atomically(folder / f"{name}{_SUFFIX}", data)
        segment.sha256 = name


def read_segment(folder: Path, sha256: str) -> Segment:
    """A segment from its file; ValueError, which names the segment, if the file is missing or damaged.

    Its arrays are in the file until they are asked for. They are read anew each time, so that not all segments need to
    fit in memory next to what is made of them.
    """
    if not re.fullmatch("[0-9a-f]{64}", sha256):
        raise ValueError(f"{sha256!r} names no segment")
    path = folder / f"{sha256}{_SUFFIX}"
    with _name_segment_in_errors(sha256), _open(path) as file:
        if hashlib.file_digest(file, "sha256").hexdigest() != sha256:
            raise ValueError("damaged")
        file.seek(0)
        _, listing, _ = peek(file.read(8 + MAX_HEADER_BYTES), "segment", {})
    return Segment(_SavedArrays(path, sha256, tuple(listing)), sha256)


@dataclass(frozen=True)
class _SavedArrays(Mapping[str, np.ndarray]):
    """The arrays in the file of a segment. Each access reads the file."""

    path: Path
    sha256: str
    names: tuple[str, ...]

    def __getitem__(self, name: str) -> np.ndarray:
        if name not in self.names:
            raise KeyError(name)
        with _name_segment_in_errors(self.sha256), _open(self.path) as file:
            return decode(file.read(), "segment", {})[1][name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.names)


def _open(path: Path) -> BufferedReader:
    return open_regular_file(path, MAX_FILE_BYTES, "no segment is that large")


@contextmanager
def _name_segment_in_errors(sha256: str) -> Iterator[None]:
    """Turns errors about a segment's file into a ValueError that names the segment."""
    try:
        yield
    except (OSError, ValueError) as error:
        raise ValueError(f"segment {sha256[:12]}: {error}") from error


def delete_segments(folder: Path, kept: Collection[str]) -> None:
    """Deletes all segments except those with these checksums."""
    for path in folder.glob(f"*{_SUFFIX}"):
        if path.stem not in kept:
            with suppress(OSError):  # a file that is not needed does no harm
                path.unlink()
