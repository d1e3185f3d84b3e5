"""Pickles that run code or build giant objects, in every container that torch or other programs use."""

import bz2
import gzip
import io
import lzma
import os
import pickle
import struct
import subprocess
import tarfile
import zipfile
import zlib
from pathlib import Path

import numpy as np
import torch


class Call:
    """An object whose pickle calls `function` when it is loaded."""

    def __init__(self, function, *arguments):
        self.call = (function, arguments)

    def __reduce__(self):
        return self.call


def make_exploits(marker):
    """Objects whose pickles make the folder `marker` when they are loaded, by name."""
    return {
        "os.mkdir": Call(os.mkdir, marker),
        "eval": Call(eval, f"__import__('os').mkdir({marker!r})"),
        "exec": Call(exec, f"import os; os.mkdir({marker!r})"),
        "subprocess": Call(subprocess.check_call, ["mkdir", marker]),
        "pathlib": Call(Path.mkdir, Path(marker)),
    }


def make_zip(name, content, compression=zipfile.ZIP_STORED):
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", compression) as archive:
        archive.writestr(name, content)
        archive.writestr("weights/version", b"3\n")
    return data.getvalue()


def make_tar(content):
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for name in ("storages", "tensors", "pickle"):  # torch unpickles each of them
            record = tarfile.TarInfo(name)
            record.size = len(content)
            archive.addfile(record, io.BytesIO(content))
    return data.getvalue()


def save_with_torch(value, zip_file):
    data = io.BytesIO()
    torch.save(value, data, _use_new_zipfile_serialization=zip_file)
    return data.getvalue()


STREAM_START, STREAM_END = save_with_torch(None, False).split(pickle.dumps(None, 2))


def put_into_containers(pickled):
    """The pickle in each container, by name."""
    npy = io.BytesIO()
    np.lib.format.write_array_header_1_0(npy, {"descr": "|O", "fortran_order": False, "shape": (1,)})
    return {
        "bare": pickled,
        "stream": STREAM_START + pickled + STREAM_END,
        "stream-first": pickled + STREAM_START,
        "stream-keys": STREAM_START + pickle.dumps(None, 2) + pickled,
        "stream-system": STREAM_START.split(b"}q")[0][:-2] + pickled,
        "zip": make_zip("weights/data.pkl", pickled),
        "zip-deflated": make_zip("weights/data.pkl", pickled, zipfile.ZIP_DEFLATED),
        "zip-other-name": make_zip("weights/weights.pkl", pickled),
        "zip-constants": make_zip("weights/constants.pkl", pickled),
        "tar": make_tar(pickled),
        "npy": npy.getvalue() + pickled,
        "npz": make_zip("weights.npy", npy.getvalue() + pickled),
        "gzip": gzip.compress(pickled),  # as joblib and dill users compress
        "zlib": zlib.compress(pickled),
        "bz2": bz2.compress(pickled),
        "lzma": lzma.compress(pickled),
        "safetensors-header": struct.pack("<Q", len(pickled)) + pickled,
    }


def make_code_running(marker):
    """Every exploit in every container and in every pickle protocol, by name."""
    found = {}
    for name, exploit in make_exploits(marker).items():
        for container, data in put_into_containers(pickle.dumps(exploit, 2)).items():
            found[f"code-{name}-{container}"] = data
        for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
            found[f"code-{name}-protocol-{protocol}"] = pickle.dumps(exploit, protocol)
        found[f"code-{name}-torch-zip"] = save_with_torch(exploit, True)
        found[f"code-{name}-torch-stream"] = save_with_torch([np.zeros(3), exploit], False)
        found[f"code-{name}-object-array"] = save_with_torch(np.array([exploit], object), True)
    old_opcodes = {
        "inst": b"(S'" + marker.encode() + b"'\nios\nmkdir\n.",
        "obj": b"(cos\nmkdir\nS'" + marker.encode() + b"'\no.",
        "build": b"cos\nmkdir\n(S'" + marker.encode() + b"'\ntR0(K\x01tb.",
    }
    for name, pickled in old_opcodes.items():
        found |= {f"code-{name}-{container}": pickled_ for container, pickled_ in put_into_containers(pickled).items()}
    return found


def make_giants():
    """Pickles of allowed types that would fill the memory, by name."""
    huge = 10**12
    array = np.zeros(12_288, np.float32)  # as many parameters as the policy has for which the corpus is loaded
    reconstruct = array.__reduce__()[0]
    float32 = np.dtype(np.float32)
    doubled = (
        b"]q\x00" + b"".join(b"(h%ch%ce0]q%c(h%ch%ce" % ((k,) * 2 + (k + 1,) + (k,) * 2) for k in range(40)) + b"."
    )
    texts = b"c_codecs\nencode\nq\x00" + b"h\x00" * 40 + pickle.dumps("a" * 10_000, 2)[2:-1]
    pickles = {
        "hex-of-hex": b"\x80\x02" + texts + b"X\x05\x00\x00\x00ascii\x86R" + b"X\x03\x00\x00\x00hex\x86R" * 40 + b".",
        "hashed-tuples": b"\x80\x02K\x00q\x01" + b"h\x01h\x01\x86q\x01" * 60 + b"}h\x01K\x00s.",
        "object-array": pickle.dumps(Call(reconstruct, np.ndarray, (2**31 - 1,), "O"), 2),
        "bytearray": pickle.dumps(Call(bytearray, huge), 2),
        "ndarray": pickle.dumps(Call(np.ndarray, (huge,), float32), 2),
        "stride-0": pickle.dumps(Call(np.ndarray, (huge,), float32, bytearray(4), 0, (0,)), 2),
        "negative-shape": pickle.dumps(Call(np.ndarray, (-1,), float32), 2),
        "reconstruct": pickle.dumps(Call(reconstruct, np.ndarray, (huge,), b"b"), 2),
        "reconstruct-dtype": pickle.dumps(Call(reconstruct, np.dtype, (0,), b"b"), 2),
        "tensor": pickle.dumps(Call(torch.Tensor, huge), 2),
        "shared-lists": b"\x80\x02" + doubled,
        "repeated-array": pickle.dumps([array] * 100_000, 2),
        "long1": b"\x80\x02\x8a\xff" + b"\x7f" * 255 + b".",
        "long4": b"\x80\x02\x8b" + struct.pack("<i", 2**31 - 1) + b"\x7f" * 100 + b".",
        "long-digits": b"L" + b"9" * 1_000_000 + b"L\n.",
        "binbytes8": b"\x80\x04\x8e" + struct.pack("<Q", 2**62) + b"x.",
        "binunicode8": b"\x80\x04\x8d" + struct.pack("<Q", 2**62) + b"x.",
        "binunicode": b"\x80\x02X" + struct.pack("<I", 2**32 - 1) + b"x.",
        "bytearray8": b"\x80\x05\x96" + struct.pack("<Q", 2**40) + b"x.",
        "frame": b"\x80\x04\x95" + struct.pack("<Q", 2**62) + b".",
        "long-binput": b"\x80\x02Kr\x72\xff\xff\xff\xff.",
        "marks": b"\x80\x02" + b"(" * 1_000_000 + b".",
        "tuples": b"\x80\x02)" + b"\x85" * 1_000_000 + b".",
        "wide-text": b"\x80\x02X" + struct.pack("<I", 7 * 2**20) + b"x" * (7 * 2**20 - 4) + "😀".encode() + b".",
        "no-stop": pickle.dumps(array, 2)[:-1],
        "empty": b"",
    }
    for name, old, new in [
        ("shape", b"M\x000\x85", b"\x8a\x06" + huge.to_bytes(6, "little") + b"\x85"),
        ("shape-2-d", b"M\x000\x85", b"J\xff\xff\xff\x7fJ\xff\xff\xff\x7f\x86"),
        ("item-size", b"J\xff\xff\xff\xff", b"J\xff\xff\xff\x7f"),
        ("object-type", b"f4", b"O8"),
        ("void-type", b"f4", b"V9"),
        ("subclass", b"numpy\nndarray", b"numpy\nmatrix"),
    ]:
        pickled = pickle.dumps(array, 2)
        assert old in pickled
        pickles[f"array-{name}"] = pickled.replace(old, new)
    inside = {
        f"giant-{name}-{container}": data
        for name, pickled in pickles.items()
        for container, data in put_into_containers(pickled).items()
        if container in ("bare", "stream", "zip", "npz")
    }
    tensor = torch.zeros(1).expand(huge)
    sparse = torch.sparse_coo_tensor([[huge]], [1.0], (huge + 1,))
    for zip_file in (True, False):
        inside[f"giant-tensor-stride-0-{zip_file}"] = save_with_torch(tensor, zip_file)
        inside[f"giant-tensor-sparse-{zip_file}"] = save_with_torch(sparse, zip_file)
    return inside
