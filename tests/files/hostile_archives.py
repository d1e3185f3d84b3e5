"""Weight files of every kind that lie: zip files of torch that are not what they seem, and policy files forged."""

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
from tests.files.hostile_pickles import torch_saved
from tests.files.saved_policies import file_with, saved_policy, set_to

POLICY = MLP((28,), 8)
"""The reference's network for Ant, which every legacy file of the corpus is loaded for."""
ROW = np.random.default_rng(0).normal(size=POLICY.layout.num_params).astype(np.float32)


def archive(records, compression=zipfile.ZIP_STORED):
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", compression) as file:
        for name, content in records:
            file.writestr(name, content)
    return bytearray(data.getvalue())


def zips():
    """Zip files with a record <name>/data.pkl that torch did not write, by name."""
    row = pickle.dumps(ROW, 2)
    zeros, fewer = bytes(2**28), bytes(2**24)
    whole = torch_saved(ROW, True)
    found = {
        "bomb-deflate": archive([("w/data.pkl", zeros)], zipfile.ZIP_DEFLATED),
        "bomb-lzma": archive([("w/data.pkl", fewer)], zipfile.ZIP_LZMA),
        "bomb-bz2": archive([("w/data.pkl", fewer)], zipfile.ZIP_BZIP2),
        "bomb-beside": archive([("w/data.pkl", row), ("w/data/0", fewer)], zipfile.ZIP_DEFLATED),
        "nested": archive([("w/data.pkl", archive([("w/data.pkl", archive([("w/data.pkl", row)]))]))]),
        "many-records": archive([("w/data.pkl", row), *((f"w/{k}", b"") for k in range(50_000))]),
        "two-pickles": archive([("w/data.pkl", row), ("v/data.pkl", row)]),
        "same-name-twice": archive([("w/data.pkl", row), ("w/data.pkl", row)]),
        "no-pickle-but-first": archive([("w/data.pkl", b""), ("../../etc/passwd", b"x")]),
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


def rows():
    """Arrays that torch saved and that are not finite float rows of the right length, by name."""
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
        f"row-{name}-{'zip' if zip_file else 'stream'}": torch_saved(value, zip_file)
        for name, value in values.items()
        for zip_file in (True, False)
    }


def forgeries(folder):
    """Policy files whose headers or arrays lie, signed as a forger would, by name."""
    saved = saved_policy()
    small = {"weights": np.zeros(20, np.float32)}
    deep = "x"
    for _ in range(900):
        deep = [deep]
    headers = {
        "newer": set_to("format_version", value=3),
        "checkpoint": set_to("kind", value="checkpoint"),
        "giant-layer": set_to("policy", "hidden_sizes", value=[10**30]),
        "giant-digits": set_to("policy", "hidden_sizes", value=[10**4000] * 9),
        "huge-layer": set_to("policy", "hidden_sizes", value=[10**6]),
        "many-layers": set_to("policy", "hidden_sizes", value=[1] * 500_000),
        "layers-within-bounds": set_to("policy", "hidden_sizes", value=[1] * 21_000),
        "giant-observation": set_to("policy", "observation_shape", value=[2**62] * 1000),
        "negative-layer": set_to("policy", "hidden_sizes", value=[-4]),
        "fraction-layer": set_to("policy", "hidden_sizes", value=[4.5]),
        "text-layer": set_to("policy", "hidden_sizes", value="444"),
        "deep": set_to("policy", "hidden_sizes", value=deep),
        "long-name": set_to("policy", "name", value="m" * 60_000),
        "longer-name": set_to("policy", "name", value="m" * 1_000_000),
        "long-head": set_to("action_head", value="tanh" * 15_000),
        "many-wrappers": set_to("environment", "wrappers", value=[{"name": "scale"}] * 3000 + [{"name": "scael"}]),
        "many-codes": set_to("environment", "env_kwargs", value={f"os:{k}": "os:system" for k in range(2000)}),
        "code-policy": set_to("policy", "name", value="os:system"),
        "code-wrapper": set_to("environment", "wrappers", 0, "name", value="subprocess:Popen"),
        "code-import": set_to("environment", "imports", value=["antigravity"]),
        "code-environment": set_to("environment", "environment", value="antigravity:Env-v0"),
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
    found = {f"header-{name}": file_with(path, saved, edit).read_bytes() for name, edit in headers.items()}
    found |= {f"arrays-{name}": file_with(path, saved, arrays=content).read_bytes() for name, content in arrays.items()}
    path.unlink()
    return found | unsigned(saved, small, path)


def unsigned(saved, arrays, path):
    """Policy files damaged below the level at which they could be signed, by name."""
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
    found = {f"text-{name}": file_with(path, saved, respell=change).read_bytes() for name, change in texts.items()}
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
        "overlap": {"weights": weights, "buffers.a": weights},
        "backwards": {"weights": {**weights, "data_offsets": [80, 0]}},
        "no-type": {"weights": {"shape": [20]}},
        "number-type": {"weights": weights, "buffers.a": {"dtype": "F4", "shape": [0], "data_offsets": [80, 80]}},
        "bfloat16": {"weights": {**weights, "dtype": "BF16", "shape": [40]}},
        "not-an-array": {"weights": 3},
        "many": {f"buffers.{k}": 0 for k in range(60_000)},
    }
    for name, listing in listings.items():
        header = json.dumps({"__metadata__": metadata, **listing}).encode()
        found[f"listing-{name}"] = struct.pack("<Q", len(header)) + header + data[8 + length :]
    for name, claimed in [("0", 0), ("less", length - 9), ("more", length + 9), ("giant", 2**63), ("most", 2**20)]:
        found[f"length-{name}"] = struct.pack("<Q", claimed) + data[8:]
    found["length-spaces"] = struct.pack("<Q", 2**20) + b" " * 2**20
    found["trailing-bytes"] = data + b"x"
    found["only-arrays"] = save(arrays)
    found["no-json"] = save(arrays, metadata={"hebbes": "{"})
    path.unlink()
    return found


def largest(folder):
    """A file just below the size limit that is right but for its last bit."""
    path = Path(folder) / "forged"
    save_policy(path, saved_policy(Linear((1000,), 16_700)))
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.unlink()
    return bytes(data)
