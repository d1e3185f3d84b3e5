"""The format of our files: arrays and a JSON header with a checksum, in a safetensors file, which cannot run code.

The safetensors metadata has the single key `hebbes`. With a second key, the order of the bytes would depend on a hash.
Its value is the header as JSON text:

    kind            "policy", "checkpoint" or "segment"
    format_version  see `FORMAT_VERSIONS`
    sha256          checksum of the rest of the header and of the arrays' names, types, shapes and bytes

and the entries of that kind of file. Version 1 had no `kind`, because all its files were policies.
"""

import hashlib
import json
from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load, save

FORMAT_VERSIONS = {"policy": 3, "checkpoint": 4, "segment": 3}
"""The version in which each kind of file is written. It is raised if earlier versions of hebbes cannot read them."""

MAX_HEADER_BYTES = 2**20

Header: TypeAlias = dict[str, Any]
Arrays: TypeAlias = dict[str, np.ndarray]
EntryTypes: TypeAlias = Mapping[str, type]
"""Name and type of every header entry of a kind of file."""
Listing: TypeAlias = Mapping[str, tuple[str, tuple[int, ...]]]
"""Type, as safetensors names it, and shape of every array that a file lists."""


class NewerFormatError(ValueError):
    """A file that a newer version of this program wrote."""


def encode(kind: str, header: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> bytes:
    """The bytes of a file with these arrays and this header. Kind, version and checksum are added to the header.

    The same content gives the same bytes. Raises ValueError for content that `decode` would refuse.
    """
    # safetensors assumes native byte order and contiguous arrays.
    plain = {name: np.array(array, array.dtype.newbyteorder("="), order="C") for name, array in arrays.items()}
    whole = {**header, "kind": kind, "format_version": FORMAT_VERSIONS[kind]}
    whole["sha256"] = compute_checksum(whole, plain)
    data = save(plain, metadata={"hebbes": _to_canonical_json(whole)})
    if int.from_bytes(data[:8], "little") > MAX_HEADER_BYTES:
        raise ValueError(f"the header would exceed {MAX_HEADER_BYTES} bytes")
    return data


def decode(data: bytes, kind: str, entries: EntryTypes) -> tuple[Header, Arrays]:
    """The header entries and the arrays of a file. Raises ValueError if kind, version or checksum is wrong."""
    header, _ = _read_headers(data)
    _check_entries(header, kind, entries)
    try:
        arrays = load(data)
    except (SafetensorError, KeyError) as error:  # KeyError: a number type that numpy lacks
        raise ValueError(f"truncated or damaged ({error})") from error
    if header["sha256"] != compute_checksum(header, arrays):
        raise ValueError("damaged: the checksum does not match")
    return {name: header[name] for name in entries}, arrays


def peek(start: bytes, kind: str, entries: EntryTypes) -> tuple[Header, Listing, int]:
    """The header entries, the list of arrays and the size of a file, from its first 8 + MAX_HEADER_BYTES bytes.

    Do not trust them: only `decode` compares the checksum. Raises ValueError as `decode` does.
    """
    header, listed = _read_headers(start)
    _check_entries(header, kind, entries)
    try:
        listing = {name: (entry["dtype"], tuple(entry["shape"])) for name, entry in listed.items()}
        ends = [int(entry["data_offsets"][1]) for entry in listed.values()]
    except (LookupError, TypeError, ValueError, OverflowError) as error:
        raise ValueError("truncated or damaged: the list of arrays makes no sense") from error
    size = 8 + int.from_bytes(start[:8], "little") + max(ends, default=0)
    return {name: header[name] for name in entries}, listing, size


def compute_checksum(header: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> str:
    """The SHA-256 checksum of everything in a file except the checksum itself."""
    rest = {name: entry for name, entry in header.items() if name != "sha256"}
    found = hashlib.sha256(_to_canonical_json(rest).encode())
    for name, array in sorted(arrays.items()):
        found.update(_to_canonical_json([name, array.dtype.str, array.shape]).encode())
        found.update(np.ascontiguousarray(array).data)
    return found.hexdigest()


def _to_canonical_json(value: Any) -> str:
    return json.dumps(value, sort_keys=True, allow_nan=False, separators=(",", ":"))


def _check_entries(header: Header, kind: str, entries: EntryTypes) -> None:
    version = header.get("format_version")
    if type(version) is not int or version < 1:
        raise ValueError(f"the header has a bad or missing format_version {version!r}")
    found = header.get("kind") if version > 1 else "policy"
    if found != kind:
        raise ValueError(f"not a {kind} file, but a file of kind {found!r}")
    if version > (newest := FORMAT_VERSIONS[kind]):
        raise NewerFormatError(
            f"format version {version}, but this program reads up to {newest}; update hebbes to open it"
        )
    expected: EntryTypes = {**entries, "format_version": int, "sha256": str}
    if version > 1:
        expected = {**expected, "kind": str}
    for name in sorted(expected.keys() | header.keys()):
        if name not in expected or not isinstance(header.get(name), expected[name]):
            raise ValueError(f"the header has a bad, missing or unknown entry {name!r}")


def _read_headers(start: bytes) -> tuple[Header, dict[str, Any]]:
    """Our header and the list of arrays, both from the safetensors header (8 bytes of length, then JSON)."""
    length = int.from_bytes(start[:8], "little")
    if length > MAX_HEADER_BYTES:
        raise ValueError("not a hebbes file")
    if len(start) < 8 + length:
        raise ValueError("truncated, or not a hebbes file")
    try:
        listed = json.loads(start[8 : 8 + length])
        text = listed.pop("__metadata__")["hebbes"]
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError("not a hebbes file") from error
    try:
        header = json.loads(text)
    except (ValueError, TypeError, RecursionError) as error:
        raise ValueError("the header is not JSON") from error
    if not isinstance(header, dict):
        raise ValueError("the header is not a JSON object")
    if _to_canonical_json(header) != text:  # for example, if an entry occurs twice
        raise ValueError("the header is not as it was written")
    return header, listed
