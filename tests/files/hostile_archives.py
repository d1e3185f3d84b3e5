"""Forged weight files: zip files that torch did not write, arrays that do not fit, and policy files that lie."""

import io
import json
import pickle
import struct
import zipfile
from math import inf, nan
from pathlib import Path

import numpy as np
from safetensors.numpy import save

from hebbes.files.policy_file import save_policy
from hebbes.policies.linear import Linear
from hebbes.policies.mlp import MLP
from tests.files.hostile_pickles import save_with_torch
from tests.files.saved_policies import make_saved_policy, make_setter, write_forged_file

POLICY = MLP((28,), 8)
"""The reference's network for Ant. Every file of torch.save in the corpus is loaded for it."""
ROW = np.random.default_rng(0).normal(size=POLICY.layout.num_params).astype(np.float32)


def make_archive(records, compression=zipfile.ZIP_STORED):
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", compression) as file:
        for name, content in records:
            file.writestr(name, content)
    return bytearray(data.getvalue())


def make_zips():
    """Zip files that torch did not write, but with a record <name>/data.pkl, by name."""
    row = pickle.dumps(ROW, 2)
    zeros, fewer = bytes(2**28), bytes(2**24)
    whole = save_with_torch(ROW, True)
    found = {
        "bomb-deflate": make_archive([("w/data.pkl", zeros)], zipfile.ZIP_DEFLATED),
        "bomb-lzma": make_archive([("w/data.pkl", fewer)], zipfile.ZIP_LZMA),
        "bomb-bz2": make_archive([("w/data.pkl", fewer)], zipfile.ZIP_BZIP2),
        "bomb-beside": make_archive([("w/data.pkl", row), ("w/data/0", fewer)], zipfile.ZIP_DEFLATED),
        "nested": make_archive([("w/data.pkl", make_archive([("w/data.pkl", make_archive([("w/data.pkl", row)]))]))]),
        "many-records": make_archive([("w/data.pkl", row), *((f"w/{k}", b"") for k in range(50_000))]),
        "two-pickles": make_archive([("w/data.pkl", row), ("v/data.pkl", row)]),
        "same-name-twice": make_archive([("w/data.pkl", row), ("w/data.pkl", row)]),
        "no-pickle-but-first": make_archive([("w/data.pkl", b""), ("../../etc/passwd", b"x")]),
        "no-directory": whole[: whole.rindex(b"PK\x01\x02")],
    }
    directory = whole.index(b"PK\x01\x02")
    for name, offset, value in [
        ("encrypted", 8, struct.pack("<H", 1)),
        ("method-99", 10, struct.pack("<H", 99)),
        ("checksum", 16, bytes(4)),
        ("stored-size", 20, struct.pack("<I", 2**32 - 2)),
        ("full-size", 24, struct.pack("<I", 2**32 - 2)),
        ("zip64-size", 24, struct.pack("<I", 2**32 - 1)),
        ("offset", 42, struct.pack("<I", 2**31)),
        ("name-length", 28, struct.pack("<H", 2**16 - 1)),
    ]:
        forged = bytearray(whole)
        forged[directory + offset : directory + offset + len(value)] = value
        found[f"directory-{name}"] = forged
    return {f"zip-{name}": bytes(data) for name, data in found.items()}


def make_rows():
    """Files of torch.save with anything but a finite float row of the right length, by name."""
    values = {
        "nan": np.where(ROW > 2, nan, ROW).astype(np.float32),
        "infinity": np.where(ROW > 2, inf, ROW).astype(np.float32),
        "overflow": ROW.astype(np.float64) * 1e300,
        "too-short": ROW[:-1],
        "too-long": np.append(ROW, np.float32(0)),
        "nothing": ROW[:0],
        "matrix": ROW.reshape(8, -1),
        "half": ROW.astype(np.float16),
        "whole-numbers": ROW.astype(np.int64),
        "complex": ROW.astype(complex),
        "big-endian": ROW.astype(">f4"),
        "objects": ROW[:100].astype(object),
        "texts": ROW[:100].astype(str),
        "list": [1.0, 2.0],
    }
    return {
        f"row-{name}-{'zip' if zip_file else 'stream'}": save_with_torch(value, zip_file)
        for name, value in values.items()
        for zip_file in (True, False)
    }


def make_forgeries(folder):
    """Policy files with wrong headers or arrays and a valid checksum, as a forger would write them, by name."""
    saved = make_saved_policy()
    small = {"weights": np.zeros(20, np.float32)}
    deep = "x"
    for _ in range(900):
        deep = [deep]
    headers = {
        "newer": make_setter("format_version", value=4),
        "checkpoint": make_setter("kind", value="checkpoint"),
        "giant-layer": make_setter("policy", "hidden_sizes", value=[10**30]),
        "giant-digits": make_setter("policy", "hidden_sizes", value=[10**4000] * 9),
        "huge-layer": make_setter("policy", "hidden_sizes", value=[10**6]),
        "many-layers": make_setter("policy", "hidden_sizes", value=[1] * 500_000),
        "layers-within-bounds": make_setter("policy", "hidden_sizes", value=[1] * 21_000),
        "giant-observation": make_setter("policy", "observation_shape", value=[2**62] * 1000),
        "negative-layer": make_setter("policy", "hidden_sizes", value=[-4]),
        "fraction-layer": make_setter("policy", "hidden_sizes", value=[4.5]),
        "text-layer": make_setter("policy", "hidden_sizes", value="444"),
        "deep": make_setter("policy", "hidden_sizes", value=deep),
        "long-name": make_setter("policy", "name", value="m" * 60_000),
        "longer-name": make_setter("policy", "name", value="m" * 1_000_000),
        "long-head": make_setter("action_head", value="tanh" * 15_000),
        "many-wrappers": make_setter("environment", "wrappers", value=[{"name": "scale"}] * 3000 + [{"name": "scael"}]),
        "many-codes": make_setter("environment", "env_kwargs", value={f"os:{k}": "os:system" for k in range(2000)}),
        "code-policy": make_setter("policy", "name", value="os:system"),
        "code-wrapper": make_setter("environment", "wrappers", 0, "name", value="subprocess:Popen"),
        "code-import": make_setter("environment", "imports", value=["antigravity"]),
        "code-environment": make_setter("environment", "environment", value="antigravity:Env-v0"),
    }
    arrays = {
        "nan": {"weights": np.full(20, nan, np.float32)},
        "infinity": {"weights": np.full(20, inf, np.float32)},
        "too-short": {"weights": np.zeros(19, np.float32)},
        "matrix": {"weights": np.zeros((4, 5), np.float32)},
        "float64": {"weights": np.zeros(20)},
        "float16": {"weights": np.zeros(20, np.float16)},
        "other": {**small, "other": np.zeros(1)},
        "nan-buffer": {**small, "buffers.observation_mean": np.array([nan])},
        "many-buffers": {"buffers." + str(k): np.zeros(0) for k in range(9000)},
    }
    path = Path(folder) / "forged"
    found = {f"header-{name}": write_forged_file(path, saved, edit).read_bytes() for name, edit in headers.items()}
    found |= {
        f"arrays-{name}": write_forged_file(path, saved, arrays=content).read_bytes()
        for name, content in arrays.items()
    }
    path.unlink()
    return found | make_malformed(saved, small, path)


def make_malformed(saved, arrays, path):
    """Policy files that are malformed in the text of the header, the list of arrays or the lengths, by name."""
    texts = {
        "nan": lambda text: text.replace("1.5", "NaN"),
        "infinity": lambda text: text.replace("1.5", "1e999"),
        "digits": lambda text: text.replace("1.5", "9" * 100_000),
        "twice": lambda text: text.replace('"seed":7', '"seed":8,"seed":7'),
        "deep": lambda text: "[" * 500_000,
        "deep-values": lambda text: text.replace("1.5", "[" * 900 + "]" * 900),
        "list": lambda text: "[]",
        "wide": lambda text: "[" + "{}," * 300_000 + "{}]",
        "surrogate": lambda text: text.replace("HalfCheetah", "\\ud800"),
    }
    found = {
        f"text-{name}": write_forged_file(path, saved, respell=change).read_bytes() for name, change in texts.items()
    }
    save_policy(path, saved)
    data = path.read_bytes()
    length = int.from_bytes(data[:8], "little")
    metadata = json.loads(data[8 : 8 + length])["__metadata__"]
    weights = {"dtype": "F32", "shape": [20], "data_offsets": [0, 80]}
    listings = {
        "absurd-shape": {"weights": {**weights, "shape": [2**62, 2**62]}},
        "negative-shape": {"weights": {**weights, "shape": [-20]}},
        "text-shape": {"weights": {**weights, "shape": "20"}},
        "giant-shape": {"weights": {**weights, "shape": [10**30]}},
        "empty-giant": {"weights": weights, "buffers.a": {**weights, "shape": [0, 2**63], "data_offsets": [80, 80]}},
        "offsets": {"weights": {**weights, "data_offsets": [0, 2**63]}},
        "infinite-offset": {"weights": {**weights, "data_offsets": [0, inf]}},
        "overlap": {"weights": weights, "buffers.a": weights},
        "backwards": {"weights": {**weights, "data_offsets": [80, 0]}},
        "no-type": {"weights": {"shape": [20]}},
        "number-type": {"weights": weights, "buffers.a": {"dtype": "F4", "shape": [0], "data_offsets": [80, 80]}},
        "bfloat16": {"weights": {**weights, "dtype": "BF16", "shape": [40]}},
        "not-an-array": {"weights": 3},
        "many": {f"buffers.{k}": 0 for k in range(60_000)},
    }
    for name, listing in listings.items():
        header = json.dumps({"__metadata__": metadata, **listing}).replace("Infinity", "1e999").encode()
        found[f"listing-{name}"] = struct.pack("<Q", len(header)) + header + data[8 + length :]
    for name, claimed in [("0", 0), ("less", length - 9), ("more", length + 9), ("giant", 2**63), ("most", 2**20)]:
        found[f"length-{name}"] = struct.pack("<Q", claimed) + data[8:]
    found["length-spaces"] = struct.pack("<Q", 2**20) + b" " * 2**20
    found["trailing-bytes"] = data + b"x"
    found["only-arrays"] = save(arrays)
    found["no-json"] = save(arrays, metadata={"hebbes": "{"})
    path.unlink()
    return found


def make_largest(folder):
    """A policy file just below the size limit, correct except for one bit of its last byte."""
    path = Path(folder) / "forged"
    save_policy(path, make_saved_policy(Linear((1000,), 16_700)))
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.unlink()
    return bytes(data)
