"""Reads files that the reference wrote with `torch.save(ndarray)`, numbers only, into our policies' layout.

The reference is the code of Najarro & Risi (arXiv 2007.02686). The weights of its static ES are a row, the coefficients
of its Hebbian ES a row or a table. `torch.save` writes a pickle, and a pickle is a program. None of it is run before
`_check_array` has found that its operations are exactly those that pickle one array of floats. Only then does torch's
weights-only loader build the array. That loader alone would not be enough: it refuses code, but it accepts giant arrays
and `bytearray(10**12)`.

Two containers are read: the zip file that torch has written since 1.6, and the stream of pickles before that. The tar
file of the first versions is refused, because torch itself has no safe way to read it.
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
from hebbes.files.weight_file import open_regular_file, wrap_file_errors
from hebbes.policies.cnn import CHANNELS, CNN, KERNEL_SIZES, STRIDES
from hebbes.policies.hebbian import Hebbian
from hebbes.policies.layers import compute_pooled_size
from hebbes.policies.mlp import MLP
from hebbes.policies.rule_layout import format_rules_name

MAX_TORCH_FILE_BYTES = 8 * 2**20  # the reference's largest table, six coefficients for 91,328 synapses, takes 6.6 MB
MAX_RECORDS = 64  # torch writes about six for an array
MAX_OPERATIONS = 100  # a pickled array takes 60

_MAGIC = pickle.dumps(0x1950A86A20F9469CFC6C, protocol=2)
_SYSTEM = {"protocol_version": 1001, "little_endian": True, "type_sizes": {"short": 2, "int": 4, "long": 4}}
_STREAM_START = _MAGIC + pickle.dumps(1001, protocol=2) + pickle.dumps(_SYSTEM, protocol=2)
_STREAM_END = pickle.dumps([], protocol=2)  # no tensors follow
_TAR_MARK = slice(257, 262)  # holds b"ustar"

# The operations that pickle an array: GLOBAL and text as pairs, constants as plain values, the others by name.
_ENCODE, _LATIN1 = ("GLOBAL", "_codecs encode"), ("text", "latin1")
_PLACEHOLDERS = ("rows", "columns", "number type", "byte order", "bytes")  # where arrays differ
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


def is_torch_file(path: Path) -> bool:
    """Whether the file begins like one that torch.save wrote. False if it cannot be read."""
    try:
        if not path.is_file():
            return False
        with path.open("rb") as file:
            start = file.read(512)
    except OSError:
        return False
    return start.startswith(_MAGIC) or _is_torch_zip(start) or start[_TAR_MARK] == b"ustar"


def read_torch_weights(path: Path, policy: Policy) -> Float32[np.ndarray, " params"]:
    """The row of weights in a file of torch.save, in the order of the policy's layout.

    The policy must be a `cnn` or an `mlp` without biases, of any hidden sizes: the reference has no other static
    networks.

    Raises:
        WeightFileError: the file holds anything but one finite row of the policy's length, or the policy is another.
    """
    with wrap_file_errors(path):
        if type(policy) is Hebbian:
            raise ValueError("written by torch.save: `hebbes import` makes a policy file of learning rules")
        if type(policy) is not CNN and not (type(policy) is MLP and not policy.bias):
            raise ValueError(f"torch.save files can only hold weights of an mlp or cnn without biases, not of {policy}")
        pickled = _read_pickle(path)
        found, count = _check_array(pickled, (_ROW,)), policy.layout.num_params
        if found != (count,):
            raise ValueError(f"holds {found[0]} numbers, but the policy has {count} parameters")
        return swap_image_axes(_convert_to_finite_float32(_unpickle(pickled)), policy)


def read_torch_table(path: Path) -> Float32[np.ndarray, "..."]:
    """The row or table of finite numbers, of any size, in a file of torch.save.

    The numbers keep the reference's order: `swap_image_axes` needs the whole row of parameters. Raises WeightFileError
    if the file holds anything else.
    """
    with wrap_file_errors(path):
        pickled = _read_pickle(path)
        _check_array(pickled, (_ROW, _TABLE))
        return _convert_to_finite_float32(_unpickle(pickled))


def _read_pickle(path: Path) -> bytes:
    with open_regular_file(path, MAX_TORCH_FILE_BYTES, "files of torch.save are read up to that size") as file:
        return _extract_pickle(file.read(MAX_TORCH_FILE_BYTES))


def _convert_to_finite_float32(array: Float[np.ndarray, "..."]) -> Float32[np.ndarray, "..."]:
    with np.errstate(over="ignore"):
        found = array.astype(np.float32)
    if not np.isfinite(found).all():
        raise ValueError("holds numbers that are not finite in float32")
    return found


def _is_torch_zip(start: bytes) -> bool:
    """Whether a file begins with <name>/data.pkl, the first record that torch writes into a zip file."""
    if not start.startswith(b"PK\x03\x04") or len(start) < 30:
        return False
    (length,) = struct.unpack_from("<H", start, 26)
    return start[30 : 30 + length].endswith(b"/data.pkl")


def _extract_pickle(data: bytes) -> bytes:
    """The pickle of the object that was given to torch.save, without its container."""
    if data.startswith(b"PK\x03\x04"):
        return _extract_pickle_from_zip(data)
    if data.startswith(_STREAM_START) and data.endswith(_STREAM_END):
        return data[len(_STREAM_START) : -len(_STREAM_END)]
    if data[_TAR_MARK] == b"ustar":
        raise ValueError(
            "a tar file, as the first versions of torch wrote; if you trust the file, load it and "
            "save its weights again with torch 1.6 or later"
        )
    raise ValueError("not a file that torch.save wrote from an array, or truncated")


def _extract_pickle_from_zip(data: bytes) -> bytes:
    """The object's pickle in torch's zip file. Its records must be uncompressed and not larger than the file."""
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


def _check_array(pickled: bytes, templates: Sequence[tuple[Any, ...]]) -> tuple[int, ...]:
    """The shape of the pickled array. Raises ValueError unless the pickle makes one array of little-endian floats only.

    `templates` are the accepted templates: _ROW, _TABLE.
    """
    try:
        operations = _list_operations(pickled)
    except ValueError as error:
        raise ValueError(f"damaged, or not what torch.save wrote ({error})") from error
    match next((found for template in templates if (found := _match_template(operations, template)) is not None), None):
        case [*shape, ("text", str(number_type)), ("text", str(byte_order)), ("text", str(content))] if all(
            type(size) is int and size > 0 for size in shape
        ):
            pass
        case _:
            most = "one dimension" if templates == (_ROW,) else "one or two dimensions"
            raise ValueError(f"holds something other than one array of {most}, saved as torch.save(array)")
    if number_type not in ("f4", "f8") or byte_order != "<":
        raise ValueError(f"holds numbers of type {byte_order}{number_type}, not little-endian float32 or float64")
    if len(content) != prod(shape) * np.dtype(number_type).itemsize:
        raise ValueError("damaged: the array's bytes do not fit its length")
    return tuple(shape)


def _match_template(operations: Sequence[Any], template: tuple[Any, ...]) -> list[Any] | None:
    """The values at the template's placeholders. None if the operations do not match the template."""
    pairs = zip(operations, template, strict=False)
    values = {expected: operation for operation, expected in pairs if expected in _PLACEHOLDERS}
    return [*values.values()] if operations == [values.get(expected, expected) for expected in template] else None


def _list_operations(pickled: bytes) -> list[Any]:
    """The operations of a pickle, in order, without running it. Memo entries are replaced by their values."""
    operations: list[Any] = []
    memo: dict[int, Any] = {}
    for opcode, argument, _ in islice(pickletools.genops(pickled), MAX_OPERATIONS):
        match opcode.name:
            case "PROTO" if argument == 2:
                pass
            case "BINPUT" | "LONG_BINPUT":
                memo[cast(int, argument)] = operations[-1] if operations else None
            case "BINGET" | "LONG_BINGET":
                remembered = memo.get(cast(int, argument))
                is_constant = isinstance(remembered, tuple)
                operations.append(remembered if is_constant else "GET")  # GET of an object matches no template
            case "GLOBAL":
                operations.append(("GLOBAL", str(argument).replace("numpy._core.", "numpy.core.")))
            case "BINUNICODE":
                operations.append(("text", argument))
            case "BININT" | "BININT1" | "BININT2":
                operations.append(argument)
            case "NONE" | "NEWFALSE" | "NEWTRUE":
                operations.append(_CONSTANTS[opcode.name])
            case name:
                operations.append(name)
    return operations


def _unpickle(pickled: bytes) -> Float[np.ndarray, "..."]:
    """The array that torch's weights-only loader builds from a pickle that `_check_array` accepted."""
    try:
        import torch  # takes a second and 180 MB, and nothing else in this module needs it
    except ImportError as error:
        raise ValueError("torch.save wrote it, and the package torch is not installed: pip install torch") from error

    reconstruct = np.empty(0).__reduce__()[0]
    names = [f"numpy.{core}.multiarray._reconstruct" for core in ("core", "_core")]  # of numpy 1 and numpy 2
    allowed: list[Any] = [*((reconstruct, name) for name in names), *_CLASSES]
    stream = io.BytesIO(_STREAM_START + pickled + _STREAM_END)  # torch reads exactly the pickle that was checked
    with torch.serialization.safe_globals(allowed):
        try:
            return torch.load(stream, weights_only=True)
        except pickle.UnpicklingError as error:
            raise ValueError(f"refused by torch's weights-only loader ({error})") from error


def swap_image_axes(row: Float32[np.ndarray, " params"], policy: Policy) -> Float32[np.ndarray, " params"]:
    """The reference's row of parameters for our images: (channel, height, width) instead of (channel, width, height).

    Changes the kernels, and everything that a convolutional policy has for each synapse of its first dense layer. The
    rest stays the same.
    """
    if "conv1" not in policy.layout.shapes:
        return row
    height, width, _ = policy.observation_shape
    for size, stride in zip(KERNEL_SIZES, STRIDES, strict=True):
        height, width = compute_pooled_size(height, size, stride), compute_pooled_size(width, size, stride)
    ours = row.copy()
    for name, shape in policy.layout.shapes.items():
        where = policy.layout.slices[name]
        if name.startswith("conv"):
            ours[where] = row[where].reshape(shape).swapaxes(2, 3).ravel()
        elif name in ("dense1", format_rules_name("dense1")):
            features = (*shape[:-1], CHANNELS[-1], width, height)
            ours[where] = row[where].reshape(features).swapaxes(-2, -1).ravel()
    return ours
