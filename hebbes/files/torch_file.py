"""Reads files that the reference wrote with `torch.save(ndarray)`, numbers only, into our policies' layout.

The reference is the code of Najarro & Risi (arXiv 2007.02686). The weights of its static ES are a row, the coefficients
of its Hebbian ES a row or a table. `torch.save` writes a pickle, and a pickle is a program. It is never run, not even
by torch's weights-only loader. That loader refuses foreign code, but it makes a `bytearray(10**12)`, and hashes nested
tuples for ever. numpy pickles an array of floats in one way only (`_PICKLED_ARRAY`), and the numbers are copied from
there.

Two containers are read: the zip file that torch has written since 1.6, and the stream of pickles before that.
"""

import io
import pickle
import re
import struct
import zipfile
from pathlib import Path

import numpy as np
from jaxtyping import Float32

from hebbes.contracts.policy import Policy
from hebbes.files.weight_file import open_regular_file, wrap_file_errors
from hebbes.policies.cnn import CHANNELS, CNN, KERNEL_SIZES, STRIDES
from hebbes.policies.hebbian import Hebbian
from hebbes.policies.layers import compute_pooled_size
from hebbes.policies.mlp import MLP
from hebbes.policies.rule_layout import format_rules_name

MAX_TORCH_FILE_BYTES = 8 * 2**20  # the reference's largest table, six coefficients for 91,328 synapses, takes 6.6 MB
MAX_RECORDS = 64  # torch writes about six for an array

_MAGIC = pickle.dumps(0x1950A86A20F9469CFC6C, protocol=2)
_SYSTEM = {"protocol_version": 1001, "little_endian": True, "type_sizes": {"short": 2, "int": 4, "long": 4}}
_STREAM_START = _MAGIC + pickle.dumps(1001, protocol=2) + pickle.dumps(_SYSTEM, protocol=2)
_STREAM_END = pickle.dumps([], protocol=2)  # no tensors follow
_ZIP_START = b"PK\x03\x04"

_SIZE = rb"K.|M..|J...[\x00-\x7f]"  # a number of one, two or four bytes
_PICKLED_ARRAY = re.compile(
    # _reconstruct(ndarray, (0,), b"b"), in numpy 2 or numpy 1. `q.` and `h.` are entries of the pickle's memo.
    rb"\x80\x02cnumpy\.(?:_core|core)\.multiarray\n_reconstruct\nq.cnumpy\nndarray\nq.K\x00\x85q."
    rb"c_codecs\nencode\nq.X\x01\x00\x00\x00bq.X\x06\x00\x00\x00latin1q.\x86q.Rq.\x87q.Rq."
    # The version of the state, and the shape.
    rb"\(K\x01(?P<rows>" + _SIZE + rb")(?P<columns>" + _SIZE + rb")?[\x85\x86]q."
    # dtype("f4", False, True), little-endian. numpy before 1.19 wrote whole numbers for its flags.
    rb"cnumpy\ndtype\nq.X\x02\x00\x00\x00(?P<number_type>f[48])q.(?:\x89\x88|K\x00K\x01)\x87q.Rq."
    rb"\(K\x03X\x01\x00\x00\x00<q.NNNJ\xff{4}J\xff{4}K\x00tq.b"
    # In rows, not columns, and the bytes of the numbers as a text.
    rb"\x89h.X.{4}(?P<text>.+)q.h.\x86q.Rq.tq.b\.",
    re.DOTALL,
)
_ZIP_ERRORS = (  # what zipfile raises for a bad file
    *(zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError, OverflowError, UnicodeDecodeError, struct.error),
)


def is_torch_file(path: Path) -> bool:
    """Whether the file begins like one that torch.save wrote. False if it cannot be read."""
    try:
        if not path.is_file():
            return False
        with path.open("rb") as file:
            start = file.read(512)
    except OSError:
        return False
    return start.startswith(_MAGIC) or (start.startswith(_ZIP_START) and b"/data.pkl" in start)


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
        row, count = _read_array(path), policy.layout.num_params
        if row.shape != (count,):
            raise ValueError(f"holds numbers of shape {row.shape}, but the policy has {count} parameters")
        return swap_image_axes(row, policy)


def read_torch_table(path: Path) -> Float32[np.ndarray, "..."]:
    """The row or table of finite numbers, of any size, in a file of torch.save.

    The numbers keep the reference's order: `swap_image_axes` needs the whole row of parameters. Raises WeightFileError
    if the file holds anything else.
    """
    with wrap_file_errors(path):
        return _read_array(path)


def _read_array(path: Path) -> Float32[np.ndarray, "..."]:
    with open_regular_file(path, MAX_TORCH_FILE_BYTES, "files of torch.save are read up to that size") as file:
        found = _PICKLED_ARRAY.fullmatch(_extract_pickle(file.read(MAX_TORCH_FILE_BYTES)))
    if found is None:
        raise ValueError(
            "holds something other than a NumPy array, one row or table of little-endian float32 or float64"
        )
    shape = [int.from_bytes(size[1:], "little") for size in found.group("rows", "columns") if size]
    content = found["text"].decode().encode("latin1")
    with np.errstate(over="ignore"):
        array = np.frombuffer(content, f"<{found['number_type'].decode()}").reshape(shape).astype(np.float32)
    if not np.isfinite(array).all():
        raise ValueError("holds numbers that are not finite in float32")
    return array


def _extract_pickle(data: bytes) -> bytes:
    """The pickle of the object that was given to torch.save, without its container."""
    if data.startswith(_ZIP_START):
        return _extract_pickle_from_zip(data)
    if data.startswith(_STREAM_START) and data.endswith(_STREAM_END):
        return data[len(_STREAM_START) : -len(_STREAM_END)]
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
