"""Policy files (`.dat`): weights and everything needed to use them, in a plain safetensors file.

Arrays: `weights` (float32, one row) and one `buffers.<name>` for every buffer. The safetensors metadata has the single
key `hebbes`, because a second one would make the order of the bytes depend on a hash, with a JSON header:

    format_version  1
    sha256          of the rest of the header and of the arrays' names, types, shapes and bytes
    policy          {"name": as in --policy, and the fields of its dataclass}
    action_head     a name of `policies.heads.HEADS`
    environment     as `rollouts.environments.spec_to_json` writes it
    provenance      score, seed, commit, ...

Loading runs no code that the file brings or chooses: names are looked up among ours, and a module of the user's own is
imported only if the caller names it. A file that is not exactly what `save_policy` wrote is refused.
"""

import dataclasses
import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float32, Shaped
from safetensors import SafetensorError
from safetensors.numpy import load, save

from contracts.policy import Buffers, Policy
from policies.heads import HEADS
from reporting.atomic_file import write_atomically
from rollouts.environments import EnvironmentSpec, spec_from_json, spec_to_json
from rollouts.registry import lookup

FORMAT_VERSION = 1
MAX_FILE_BYTES = 4 * 2**30
MAX_HEADER_BYTES = 2**20
_SECTIONS = {
    "format_version": int,
    "sha256": str,
    "policy": dict,
    "action_head": str,
    "environment": dict,
    "provenance": dict,
}
_OWN_MODULES = re.compile(r"(policies|wrappers)(\.\w+)+")


class WeightFileError(ValueError):
    """A policy file that cannot be used; one line that names the file and what is wrong with it."""


@dataclass(frozen=True)
class SavedPolicy:
    """A policy with its weights and all that is needed to let it act."""

    policy: Policy
    policy_name: str
    """As `--policy` takes it."""
    weights: Float32[np.ndarray, " params"]
    buffers: Buffers
    action_head: str
    environment: EnvironmentSpec
    provenance: Mapping[str, Any]
    """Where the weights come from: JSON values by name. Figures that are not finite are kept as None."""

    def act(self, observations: Shaped[np.ndarray, "batch ..."]) -> Shaped[np.ndarray, "batch ..."]:
        """Actions of a static policy for the wrapped environment, from observations of that environment."""
        weights = np.repeat(self.weights[np.newaxis], len(observations), axis=0)
        previous_rewards = np.zeros(len(observations), np.float32)
        return HEADS[self.action_head](self.policy.act(weights, observations, previous_rewards, None, self.buffers))


def save_policy(path: Path, saved: SavedPolicy) -> None:
    """Writes a policy file, atomically: the same policy gives the same bytes, and a write cut short changes nothing."""
    _check_arrays(saved.policy, saved.weights, saved.buffers)
    # Native byte order and contiguous, which the library takes for granted.
    arrays = {"weights": saved.weights} | {f"buffers.{name}": array for name, array in saved.buffers.items()}
    arrays = {name: np.array(array, array.dtype.newbyteorder("="), order="C") for name, array in arrays.items()}
    header: dict[str, Any] = {
        "format_version": FORMAT_VERSION,
        "policy": {"name": saved.policy_name, **_fields(saved.policy)},
        "action_head": saved.action_head,
        "environment": spec_to_json(saved.environment),
        "provenance": {name: _finite_or_none(value) for name, value in saved.provenance.items()},
    }
    header["sha256"] = _digest(header, arrays)
    write_atomically(path, save(arrays, metadata={"hebbes": _canonical(header)}))


def load_policy(path: Path, allow_imports: Sequence[str] = ()) -> SavedPolicy:
    """Rebuilds what `save_policy` wrote; `allow_imports` names the modules of the user's own code that it may import.

    Raises:
        WeightFileError: the file is missing, damaged, foreign, newer, or names code that is unknown or not allowed.
    """
    try:
        header, arrays = _read(path)
        return _rebuild(header, arrays, allow_imports)
    except OSError as error:
        raise WeightFileError(f"{path}: {error.strerror}") from None
    except (ValueError, TypeError, LookupError, AttributeError, ArithmeticError, RecursionError) as error:
        # Everything that a header of the wrong types can set off while the policy is rebuilt from it.
        raise WeightFileError(f"{path}: {' '.join(str(error).split())}") from None


def check_fits(
    saved: SavedPolicy, path: Path, *, observation_shape: tuple[int, ...], num_outputs: int, action_head: str
) -> None:
    """Refuses, with both shapes in the line, a policy that was evolved for another environment's shapes."""
    fields = _fields(saved.policy)
    found = (tuple(fields["observation_shape"]), fields["num_outputs"])
    if found != (observation_shape, num_outputs):
        raise WeightFileError(
            f"{path}: the policy takes observations of shape {found[0]} and has {found[1]} outputs; the environment "
            f"gives observations of shape {observation_shape} and takes {num_outputs} outputs"
        )


def _fields(policy: Policy) -> dict[str, Any]:
    return dataclasses.asdict(policy)  # type: ignore[call-overload]  # policies are dataclasses, see contracts/policy.py


def _finite_or_none(value: Any) -> Any:
    return None if isinstance(value, float) and not np.isfinite(value) else value


def _canonical(value: Any) -> str:
    return json.dumps(value, sort_keys=True, allow_nan=False, separators=(",", ":"))


def _digest(header: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> str:
    """Checksum over all that a file holds save the checksum itself."""
    digest = hashlib.sha256(_canonical({name: part for name, part in header.items() if name != "sha256"}).encode())
    for name, array in sorted(arrays.items()):
        digest.update(_canonical([name, array.dtype.str, array.shape]).encode())
        digest.update(array.tobytes())
    return digest.hexdigest()


def _check_arrays(policy: Policy, weights: np.ndarray, buffers: Buffers) -> None:
    if weights.dtype != np.float32:
        raise ValueError(f"weights must be float32, not {weights.dtype}")
    if weights.shape != (policy.layout.num_params,):
        raise ValueError(f"weights of shape {weights.shape}, but the policy has {policy.layout.num_params} parameters")
    for name, array in {"weights": weights, **buffers}.items():
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            raise ValueError(f"{name} holds numbers that are not finite")


def _read(path: Path) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """The header and the arrays of a file whose checksum is right."""
    data = _bytes_of(path)
    header = _header(data)
    if header.get("format_version") != FORMAT_VERSION:
        version = header.get("format_version")
        raise ValueError(f"format version {version!r}, but this program reads version {FORMAT_VERSION} only")
    for name in sorted(_SECTIONS.keys() | header.keys()):
        if name not in _SECTIONS or not isinstance(header.get(name), _SECTIONS[name]):
            raise ValueError(f"the header has a bad, missing or unknown entry {name!r}")
    try:
        arrays = load(data)
    except (SafetensorError, KeyError) as error:  # KeyError: a number type that numpy lacks
        raise ValueError(f"truncated or damaged ({error})") from None
    if header["sha256"] != _digest(header, arrays):
        raise ValueError("damaged: the checksum does not match")
    return header, arrays


def _bytes_of(path: Path) -> bytes:
    if not path.exists():
        raise ValueError("no such file")
    if not path.is_file():
        raise ValueError("not a file")
    size = path.stat().st_size
    if size == 0:
        raise ValueError("the file is empty")
    if size > MAX_FILE_BYTES:
        raise ValueError(f"the file has {size} bytes, more than the {MAX_FILE_BYTES} of the largest policy file")
    return path.read_bytes()


def _header(data: bytes) -> dict[str, Any]:
    """Our header, which lies in the metadata of the safetensors header (8 bytes of length, then JSON)."""
    length = int.from_bytes(data[:8], "little")
    if length > MAX_HEADER_BYTES:
        raise ValueError("not a hebbes policy file")
    if len(data) < 8 + length:
        raise ValueError("truncated, or not a hebbes policy file")
    try:
        text = json.loads(data[8 : 8 + length])["__metadata__"]["hebbes"]
    except (ValueError, LookupError, TypeError, RecursionError):
        raise ValueError("not a hebbes policy file") from None
    try:
        header = json.loads(text)
    except (ValueError, TypeError, RecursionError):
        raise ValueError("the header is not JSON") from None
    if not isinstance(header, dict):
        raise ValueError("the header is not a JSON object")
    return header


def _rebuild(header: Mapping[str, Any], arrays: dict[str, np.ndarray], allow_imports: Sequence[str]) -> SavedPolicy:
    _check_imports(header, allow_imports)
    fields = dict(header["policy"])
    name = fields.pop("name")
    policy = lookup("policies", name)(**{key: _tuples(value) for key, value in fields.items()})
    if header["action_head"] not in HEADS:
        raise ValueError(f"unknown action head {header['action_head']!r}; known are {sorted(HEADS)}")
    weights = arrays.pop("weights")
    if not all(array.startswith("buffers.") for array in arrays):
        raise ValueError(f"unknown arrays {sorted(arrays)}")
    buffers = {array.removeprefix("buffers."): arrays[array] for array in arrays}
    _check_arrays(policy, weights, buffers)
    environment = spec_from_json(header["environment"])
    return SavedPolicy(policy, name, weights, buffers, header["action_head"], environment, header["provenance"])


def _check_imports(header: Mapping[str, Any], allow_imports: Sequence[str]) -> None:
    """Refuses a header that names a module of the user's own code which the caller does not allow.

    Any text with a colon may be such a name, wherever it stands: Gymnasium too takes ids like `module:Name-v0`.
    """
    named = [text.split(":")[0] for text in _texts([header["policy"], header["environment"]]) if ":" in text]
    for module in (*named, *header["environment"].get("imports", ())):
        if module not in allow_imports and not _OWN_MODULES.fullmatch(module):
            raise ValueError(f"needs code from the module {module!r}; give --import {module} if you trust it")


def _texts(value: Any) -> Iterator[str]:
    """Every text in a tree of JSON values."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        yield from _texts([*value, *value.values()])
    elif isinstance(value, list):
        for item in value:
            yield from _texts(item)


def _tuples(value: Any) -> Any:
    """JSON has only lists; frozen dataclasses have only tuples."""
    return tuple(_tuples(item) for item in value) if isinstance(value, list) else value
