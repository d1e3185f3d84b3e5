"""The bytes of a policy file: arrays and a JSON header, checksummed, in a plain safetensors file.

The safetensors metadata has the single key `hebbes`, because a second one would make the order of the bytes depend on
a hash. Under it lies the header as JSON text:

    format_version  1
    sha256          of the rest of the header and of the arrays' names, types, shapes and bytes
    policy          {"name": as in --policy, and the fields of its dataclass}
    action_head     a name of `policies.heads.HEADS`
    environment     as `rollouts.environments.spec_to_json` writes it
    provenance      score, seed, commit, ...
"""

import hashlib
import json
from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load, save

FORMAT_VERSION = 1
MAX_HEADER_BYTES = 2**20
_ENTRIES: Mapping[str, type] = {
    "format_version": int,
    "sha256": str,
    "policy": dict,
    "action_head": str,
    "environment": dict,
    "provenance": dict,
}

Header: TypeAlias = dict[str, Any]
Arrays: TypeAlias = dict[str, np.ndarray]


def encode(header: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> bytes:
    """The bytes of a file with these arrays and this header, to which version and checksum are added.

    The same content gives the same bytes. ValueError for content that `decode` would refuse.
    """
    # Native byte order and contiguous, which the library takes for granted.
    plain = {name: np.array(array, array.dtype.newbyteorder("="), order="C") for name, array in arrays.items()}
    whole = {**header, "format_version": FORMAT_VERSION}
    whole["sha256"] = digest(whole, plain)
    data = save(plain, metadata={"hebbes": _canonical(whole)})
    if int.from_bytes(data[:8], "little") > MAX_HEADER_BYTES:
        raise ValueError(f"the header would exceed {MAX_HEADER_BYTES} bytes")
    return data


def decode(data: bytes) -> tuple[Header, Arrays]:
    """The header and the arrays of a file whose version and checksum are right; ValueError for any other."""
    header = _header(data)
    if header.get("format_version") != FORMAT_VERSION:
        version = header.get("format_version")
        raise ValueError(f"format version {version!r}, but this program reads version {FORMAT_VERSION} only")
    for name in sorted(_ENTRIES.keys() | header.keys()):
        if name not in _ENTRIES or not isinstance(header.get(name), _ENTRIES[name]):
            raise ValueError(f"the header has a bad, missing or unknown entry {name!r}")
    try:
        arrays = load(data)
    except (SafetensorError, KeyError) as error:  # KeyError: a number type that numpy lacks
        raise ValueError(f"truncated or damaged ({error})") from error
    if header["sha256"] != digest(header, arrays):
        raise ValueError("damaged: the checksum does not match")
    return header, arrays


def digest(header: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> str:
    """Checksum over all that a file holds save the checksum itself."""
    found = hashlib.sha256(_canonical({name: entry for name, entry in header.items() if name != "sha256"}).encode())
    for name, array in sorted(arrays.items()):
        found.update(_canonical([name, array.dtype.str, array.shape]).encode())
        found.update(array.tobytes())
    return found.hexdigest()


def _canonical(value: Any) -> str:
    return json.dumps(value, sort_keys=True, allow_nan=False, separators=(",", ":"))


def _header(data: bytes) -> Header:
    """Our header, which lies in the metadata of the safetensors header (8 bytes of length, then JSON)."""
    length = int.from_bytes(data[:8], "little")
    if length > MAX_HEADER_BYTES:
        raise ValueError("not a hebbes policy file")
    if len(data) < 8 + length:
        raise ValueError("truncated, or not a hebbes policy file")
    try:
        text = json.loads(data[8 : 8 + length])["__metadata__"]["hebbes"]
    except (ValueError, LookupError, TypeError, RecursionError) as error:
        raise ValueError("not a hebbes policy file") from error
    try:
        header = json.loads(text)
    except (ValueError, TypeError, RecursionError) as error:
        raise ValueError("the header is not JSON") from error
    if not isinstance(header, dict):
        raise ValueError("the header is not a JSON object")
    return header
