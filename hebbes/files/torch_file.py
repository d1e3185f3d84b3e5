"""Files that the reference wrote with `torch.save(ndarray)`: bare numbers, read into our policies' layout.

The reference is the code of Najarro & Risi (arXiv 2007.02686): weights of its static ES are a row, coefficients of its
Hebbian ES a row or a table. `torch.save` writes a pickle, and a pickle is a program. Nothing of it is run before its
steps are known to be those of pickling one array of floats, no step more and none less (`_check_array`). Only then does
torch's weights-only loader build the array: on its own that loader refuses code, but neither giant arrays nor
`bytearray(10**12)`.

Containers: the zip file that torch writes since 1.6, and the stream of pickles before that. The tar file of the first
versions is refused, since torch itself has no safe way to read it.
"""

import io
import pickle
import pickletools
import struct
import zipfile
from collections.abc import Sequence
from itertools import islice
from math import prod
from pathlib import Path
from typing import Any, cast

import numpy as np
from jaxtyping import Float, Float32

from hebbes.contracts.policy import Policy
from hebbes.files.weight_file import opened, refusals
from hebbes.policies.cnn import CHANNELS, CNN, KERNEL_SIZES, STRIDES
from hebbes.policies.hebbian import Hebbian, rules_of
from hebbes.policies.kernels.convolution import pooled_size
from hebbes.policies.mlp import MLP

MAX_LEGACY_BYTES = 8 * 2**20  # the reference's largest table, six coefficients for 91,328 synapses, takes 6.6 MB
MAX_RECORDS = 64  # torch writes half a dozen for an array
MAX_STEPS = 100  # a pickled array takes 60

_MAGIC = pickle.dumps(0x1950A86A20F9469CFC6C, protocol=2)
_SYSTEM = {"protocol_version": 1001, "little_endian": True, "type_sizes": {"short": 2, "int": 4, "long": 4}}
_STREAM_START = _MAGIC + pickle.dumps(1001, protocol=2) + pickle.dumps(_SYSTEM, protocol=2)
_STREAM_END = pickle.dumps([], protocol=2)  # no tensors follow
_TAR_MARK = slice(257, 262)  # holds b"ustar"

# The steps of pickling an array: GLOBAL and text as pairs, other operations by name, the rest as plain values.
_ENCODE, _LATIN1 = ("GLOBAL", "_codecs encode"), ("text", "latin1")
_HOLES = ("rows", "columns", "number type", "byte order", "bytes")  # where arrays differ
_START: tuple[Any, ...] = (
    *(("GLOBAL", "numpy.core.multiarray _reconstruct"), ("GLOBAL", "numpy ndarray"), 0, "TUPLE1"),
    *(_ENCODE, ("text", "b"), _LATIN1, "TUPLE2", "REDUCE", "TUPLE3", "REDUCE"),
    *("MARK", 1),
)
_END: tuple[Any, ...] = (
    *(("GLOBAL", "numpy dtype"), "number type", False, True, "TUPLE3", "REDUCE"),
    *("MARK", 3, "byte order", None, None, None, -1, -1, 0, "TUPLE", "BUILD"),
    *(False, _ENCODE, "bytes", _LATIN1, "TUPLE2", "REDUCE", "TUPLE", "BUILD", "STOP"),
)
_ROW = (*_START, "rows", "TUPLE1", *_END)
_TABLE = (*_START, "rows", "columns", "TUPLE2", *_END)
_ZIP_ERRORS = (  # what zipfile raises for a bad file
    *(zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError, OverflowError, UnicodeDecodeError, struct.error),
)
_CLASSES = (np.ndarray, np.dtype, type(np.dtype(np.float32)), type(np.dtype(np.float64)))
_CONSTANTS = {"NONE": None, "NEWFALSE": False, "NEWTRUE": True}


def is_legacy(path: Path) -> bool:
    """Whether the file begins as one of those that torch.save has written; False where nothing can be read."""
    try:
        if not path.is_file():
            return False
        with path.open("rb") as file:
            start = file.read(512)
    except OSError:
        return False
    return start.startswith(_MAGIC) or _is_torch_zip(start) or start[_TAR_MARK] == b"ustar"


def legacy_weights(path: Path, policy: Policy) -> Float32[np.ndarray, " params"]:
    """The row of weights of a legacy file, in the order of the policy's layout.

    Takes `cnn` and `mlp` without biases, of any hidden sizes, since the reference has no other static networks.

    Raises:
        WeightFileError: the file holds anything but one finite row of the policy's length, or the policy is another.
    """
    with refusals(path):
        if type(policy) is Hebbian:
            raise ValueError("written by torch.save: `hebbes import` makes a policy file of learning rules")
        if type(policy) is not CNN and not (type(policy) is MLP and not policy.bias):
            raise ValueError(f"torch.save files can only hold weights of a mlp or cnn without biases, not of {policy}")
        pickled = _pickle_in(path)
        found, count = _check_array(pickled, (_ROW,)), policy.layout.num_params
        if found != (count,):
            raise ValueError(f"holds {found[0]} numbers, but the policy has {count} parameters")
        return in_our_order(_finite(_unpickled(pickled)), policy)


def legacy_table(path: Path) -> Float32[np.ndarray, "..."]:
    """The finite numbers of a legacy file, a row or a table of any size; WeightFileError where it holds anything else.

    They are in the reference's order: `in_our_order` is for the whole row of parameters.
    """
    with refusals(path):
        pickled = _pickle_in(path)
        _check_array(pickled, (_ROW, _TABLE))
        return _finite(_unpickled(pickled))


def _pickle_in(path: Path) -> bytes:
    with opened(path, MAX_LEGACY_BYTES, "files of torch.save are read up to that size") as file:
        return _object_pickle(file.read(MAX_LEGACY_BYTES))


def _finite(array: Float[np.ndarray, "..."]) -> Float32[np.ndarray, "..."]:
    with np.errstate(over="ignore"):
        found = array.astype(np.float32)
    if not np.isfinite(found).all():
        raise ValueError("holds numbers that are not finite in float32")
    return found


def _is_torch_zip(start: bytes) -> bool:
    """Whether a file begins with the record that torch writes first into a zip file, <name>/data.pkl."""
    if not start.startswith(b"PK\x03\x04") or len(start) < 30:
        return False
    (length,) = struct.unpack_from("<H", start, 26)
    return start[30 : 30 + length].endswith(b"/data.pkl")


def _object_pickle(data: bytes) -> bytes:
    """The pickle of what was given to torch.save, out of its container."""
    if data.startswith(b"PK\x03\x04"):
        return _zip_record(data)
    if data.startswith(_STREAM_START) and data.endswith(_STREAM_END):
        return data[len(_STREAM_START) : -len(_STREAM_END)]
    if data[_TAR_MARK] == b"ustar":
        raise ValueError(
            "a tar file, as the first versions of torch wrote; save its weights anew with torch 1.6 or later, "
            "where you trust the file"
        )
    raise ValueError("not a file that torch.save wrote from an array, or truncated")


def _zip_record(data: bytes) -> bytes:
    """The object's pickle in torch's zip file, whose records are all stored, whole, and together no larger than it."""
    if data.count(b"PK\x01\x02") > MAX_RECORDS:
        raise ValueError(f"a zip file of more than {MAX_RECORDS} records, which torch.save does not write")
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            records = archive.infolist()
            if any(
                record.compress_type != zipfile.ZIP_STORED or record.compress_size != record.file_size
                for record in records
            ):
                raise ValueError("a zip file with compressed records, which torch.save does not write")
            if sum(record.file_size for record in records) > len(data):
                raise ValueError("a zip file whose records are larger than the file")
            found = [record.filename for record in records if record.filename.endswith("/data.pkl")]
            if archive.testzip() is not None or len(found) != 1:
                raise ValueError("damaged, or a zip file that torch.save did not write")
            return archive.read(found[0])
    except _ZIP_ERRORS as error:
        raise ValueError(f"a damaged zip file ({error})") from error


def _check_array(pickled: bytes, kinds: Sequence[tuple[Any, ...]]) -> tuple[int, ...]:
    """The shape of the array; ValueError unless the pickle makes one of little-endian floats, and does nothing else.

    `kinds` are the arrays to take: _ROW, _TABLE.
    """
    try:
        steps = _steps(pickled)
    except ValueError as error:
        raise ValueError(f"damaged, or not what torch.save wrote ({error})") from error
    match next((holes for kind in kinds if (holes := _holes(steps, kind)) is not None), None):
        case [*shape, ("text", str(number_type)), ("text", str(byte_order)), ("text", str(content))] if all(
            type(size) is int and size > 0 for size in shape
        ):
            pass
        case _:
            most = "one dimension" if kinds == (_ROW,) else "one or two dimensions"
            raise ValueError(f"holds something other than one array of {most}, saved as torch.save(array)")
    if number_type not in ("f4", "f8") or byte_order != "<":
        raise ValueError(f"holds numbers of type {byte_order}{number_type}, not little-endian float32 or float64")
    if len(content) != prod(shape) * np.dtype(number_type).itemsize:
        raise ValueError("damaged: the array's bytes do not fit its length")
    return tuple(shape)


def _holes(steps: Sequence[Any], kind: tuple[Any, ...]) -> list[Any] | None:
    """What stands where arrays differ; None for steps of another kind."""
    holes = {expected: step for step, expected in zip(steps, kind, strict=False) if expected in _HOLES}
    return [*holes.values()] if steps == [holes.get(expected, expected) for expected in kind] else None


def _steps(pickled: bytes) -> list[Any]:
    """What a pickle would do, step by step, without doing it; memo entries are replaced by what they stand for."""
    steps: list[Any] = []
    memo: dict[int, Any] = {}
    for opcode, argument, _ in islice(pickletools.genops(pickled), MAX_STEPS):
        match opcode.name:
            case "PROTO" if argument == 2:
                pass
            case "BINPUT" | "LONG_BINPUT":
                memo[cast(int, argument)] = steps[-1] if steps else None
            case "BINGET" | "LONG_BINGET":
                remembered = memo.get(cast(int, argument))
                steps.append(remembered if isinstance(remembered, tuple) else "GET")  # of an object: in no row
            case "GLOBAL":
                steps.append(("GLOBAL", str(argument).replace("numpy._core.", "numpy.core.")))
            case "BINUNICODE":
                steps.append(("text", argument))
            case "BININT" | "BININT1" | "BININT2":
                steps.append(argument)
            case "NONE" | "NEWFALSE" | "NEWTRUE":
                steps.append(_CONSTANTS[opcode.name])
            case name:
                steps.append(name)
    return steps


def _unpickled(pickled: bytes) -> Float[np.ndarray, "..."]:
    """What torch's weights-only loader makes of a pickle that `_check_array` let pass."""
    import torch  # takes a second and 180 MB, and nothing else here needs it

    reconstruct = np.empty(0).__reduce__()[0]
    names = [f"numpy.{core}.multiarray._reconstruct" for core in ("core", "_core")]  # of numpy 1 and numpy 2
    allowed: list[Any] = [*((reconstruct, name) for name in names), *_CLASSES]
    stream = io.BytesIO(_STREAM_START + pickled + _STREAM_END)  # torch reads what was checked, whatever the container
    with torch.serialization.safe_globals(allowed):
        try:
            return torch.load(stream, weights_only=True)
        except pickle.UnpicklingError as error:
            raise ValueError(f"refused by torch's weights-only loader ({error})") from error


def in_our_order(row: Float32[np.ndarray, " params"], policy: Policy) -> Float32[np.ndarray, " params"]:
    """The reference's images were (channel, width, height), ours are (channel, height, width); the rest is the same.

    Turns the kernels, and whatever a convolutional policy keeps for each synapse of its first dense layer.
    """
    if "conv1" not in policy.layout.shapes:
        return row
    height, width, _ = policy.observation_shape
    for size, stride in zip(KERNEL_SIZES, STRIDES, strict=True):
        height, width = pooled_size(height, size, stride), pooled_size(width, size, stride)
    ours = row.copy()
    for name, shape in policy.layout.shapes.items():
        where = policy.layout.slices[name]
        if name.startswith("conv"):
            ours[where] = row[where].reshape(shape).swapaxes(2, 3).ravel()
        elif name in ("dense1", rules_of("dense1")):
            features = (*shape[:-1], CHANNELS[-1], width, height)
            ours[where] = row[where].reshape(features).swapaxes(-2, -1).ravel()
    return ours
