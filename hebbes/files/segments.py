"""Segments: files of large arrays that several checkpoints name by their checksum, each written once."""

import hashlib
import re
from collections.abc import Collection, Iterable
from contextlib import suppress
from pathlib import Path

from hebbes.contracts.trainer import MAX_SEGMENT_BYTES, Segment
from hebbes.files.atomic_file import write_atomically
from hebbes.files.checksummed_file import MAX_HEADER_BYTES, decode, encode
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
    """A segment from its file; ValueError, which names the segment, if the file is missing or damaged."""
    if not re.fullmatch("[0-9a-f]{64}", sha256):
        raise ValueError(f"{sha256!r} names no segment")
    try:
        with open_regular_file(folder / f"{sha256}{_SUFFIX}", MAX_FILE_BYTES, "no segment is that large") as file:
            data = file.read()
    except (OSError, ValueError) as error:
        raise ValueError(f"segment {sha256[:12]}: {error}") from error
    if hashlib.sha256(data).hexdigest() != sha256:
        raise ValueError(f"segment {sha256[:12]} is damaged")
    return Segment(decode(data, "segment", {})[1], sha256)


def delete_segments(folder: Path, kept: Collection[str]) -> None:
    """Deletes all segments except those with these checksums."""
    for path in folder.glob(f"*{_SUFFIX}"):
        if path.stem not in kept:
            with suppress(OSError):  # a file that is not needed does no harm
                path.unlink()
