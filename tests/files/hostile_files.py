"""A corpus of weight files that must be refused, and the time and memory that refusing each of them takes.

    python -m tests.files.hostile_files        writes the corpus, loads every file, prints one line

The memory of a file is the process's highest resident size so far minus its resident size before loading. It is never
less than what the file took.
"""

import json
import os
import random
import socket
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from hebbes.files.policy_file import read_policy_file, save_policy
from hebbes.files.torch_file import read_torch_weights
from tests.files.hostile_archives import POLICY, ROW, make_forgeries, make_largest, make_rows, make_zips
from tests.files.hostile_pickles import make_code_running, make_giants, save_with_torch
from tests.files.saved_policies import make_saved_policy
from tests.python_process import run_python

KILOBYTE = 1024


@dataclass(frozen=True)
class LoadResult:
    """The result of loading one file with one function."""

    file: str
    loader: str
    error: str
    """Name of the exception's class. "" if the file was loaded."""
    message: str
    seconds: float
    """Of processor time, so that other programs do not count."""
    megabytes: float


def write_corpus(folder: Path, marker: Path) -> int:
    """Fills the folder with hostile files and returns their number. Programs in them would make the folder `marker`."""
    contents = {
        **make_code_running(str(marker)),
        **make_giants(),
        **make_zips(),
        **make_rows(),
        **make_forgeries(folder),
        **make_damaged(folder),
    }
    contents |= {**make_foreign(str(marker)), "largest": make_largest(folder)}
    for name, content in contents.items():
        (folder / name).write_bytes(content)
    return len(contents) + make_places(folder)


def make_damaged(folder):
    """Good files, cut at every kilobyte or with one flipped bit that a checksum covers, by name."""
    path = folder / "good"
    save_policy(path, make_saved_policy(POLICY, buffers={"observation_mean": np.arange(28.0)}))
    policy, zip_file, stream = path.read_bytes(), save_with_torch(ROW, True), save_with_torch(ROW, False)
    path.unlink()
    found = {
        f"cut-{kind}-{length}": data[:length]
        for kind, data in [("policy", policy), ("zip", zip_file), ("stream", stream)]
        for length in [*range(KILOBYTE, len(data), KILOBYTE), len(data) - 1]
    }
    flip = random.Random(0)
    pickle_end = zip_file.index(b"PK", 100)
    for kind, data, end in [("policy", policy, len(policy)), ("zip", zip_file, pickle_end)]:
        for _ in range(200):
            at, bit = flip.randrange(60 if kind == "zip" else 0, end), flip.randrange(8)
            flipped = bytearray(data)
            flipped[at] ^= 1 << bit
            found[f"flip-{kind}-{at}-{bit}"] = bytes(flipped)
    return found


def make_foreign(marker: str) -> dict[str, bytes]:
    """Files of other kinds, by name."""
    noise = random.Random(1)
    starts = {
        "hdf5": b"\x89HDF\r\n\x1a\n" + bytes(2000),
        "png": b"\x89PNG\r\n\x1a\n" + bytes(2000),
        "elf": b"\x7fELF\x02\x01\x01" + bytes(2000),
        "gzip": b"\x1f\x8b\x08" + bytes(2000),
        "npy": b"\x93NUMPY\x01\x00v\x00{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999,), }".ljust(128),
        "text": b"A plain text file.\n" * 500,
        "html": b"<!DOCTYPE html><html><body>404 Not Found</body></html>\n",
        "json": b'{"weights": [0.1, 0.2]}',
        "yaml": f"!!python/object/apply:os.mkdir [{marker!r}]\n".encode(),
        "python": f"import os\nos.mkdir({marker!r})\n".encode(),
        "csv": b"0.1,0.2,0.3\n" * 1000,
        "lfs": b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n",
        "onnx": b"\x08\x07\x12\x07pytorch" + bytes(2000),
        "zeros": bytes(5000),
        "ones": b"\xff" * 5000,
        "empty": b"",
        "one-byte": b"\x80",
    }
    return {f"foreign-{name}": data for name, data in starts.items()} | {
        f"noise-{length}": noise.randbytes(length) for length in (1, 2, 7, 8, 9, 30, 100, 512, 1000, 5000, 10**5, 10**6)
    }


def make_places(folder):
    """Makes paths without a regular file of a reasonable size, and returns their number."""
    before = len([*folder.iterdir()])
    (folder / "place-folder").mkdir()
    (folder / "place-broken-link").symlink_to("missing")
    (folder / "place-loop").symlink_to("place-loop")
    (folder / "place-folder-link").symlink_to(folder)
    for device in ("zero", "null", "urandom"):
        (folder / f"place-dev-{device}").symlink_to(f"/dev/{device}")
    (folder / "place-proc").symlink_to("/proc/self/mem")
    os.mkfifo(folder / "place-pipe")
    (folder / "place-pipe-link").symlink_to("place-pipe")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(os.path.relpath(folder / "place-socket"))
    for name, size in [("terabyte", 2**40), ("limit", 2**26), ("legacy-limit", 2**23)]:
        for start_name, start in [
            ("zeros", b""),
            ("zip", save_with_torch(ROW, True)),
            ("stream", save_with_torch(ROW, False)),
        ]:
            with (folder / f"sparse-{name}-{start_name}").open("wb") as file:
                file.write(start)
                file.truncate(size)
    return len([*folder.iterdir()]) - before


def load_and_measure_all(paths: list[Path]) -> list[LoadResult]:
    """Loads each file with each function, in this process."""
    warm_up = Path(tempfile.mkdtemp()) / "good"
    save_policy(warm_up, make_saved_policy(POLICY))
    read_policy_file(warm_up)
    warm_up.write_bytes(save_with_torch(ROW, True))
    read_torch_weights(warm_up, POLICY)
    return [load_and_measure(path, loader) for path in paths for loader in ("read_policy_file", "read_torch_weights")]


def load_and_measure(path: Path, loader: str) -> LoadResult:
    resident = read_kilobytes("VmRSS")
    error, start = None, time.process_time()
    try:
        read_policy_file(path) if loader == "read_policy_file" else read_torch_weights(path, POLICY)
    except Exception as found:  # the test asserts its class
        error = found
    seconds = time.process_time() - start
    name = "" if error is None else type(error).__name__
    return LoadResult(path.name, loader, name, str(error), seconds, (read_kilobytes("VmHWM") - resident) / KILOBYTE)


def read_kilobytes(entry: str) -> int:
    """Resident memory of this process, now (VmRSS) or at its highest (VmHWM). rusage would count the parent's, too."""
    status = Path("/proc/self/status").read_text()
    return int(status.partition(f"{entry}:")[2].split()[0])


def load_all_in_fresh_process(folder: Path) -> list[LoadResult]:
    """The results of loading every file of the folder, in a fresh process."""
    found = run_python("-m", "tests.files.hostile_files", folder)
    return [LoadResult(**fields) for fields in json.loads(found.stdout)]


def main() -> None:
    if len(sys.argv) > 1:
        print(json.dumps([asdict(verdict) for verdict in load_and_measure_all(sorted(Path(sys.argv[1]).iterdir()))]))
        return
    with tempfile.TemporaryDirectory() as place:
        folder, marker = Path(place) / "files", Path(place) / "exploited"
        folder.mkdir()
        count = write_corpus(folder, marker)
        verdicts = load_all_in_fresh_process(folder)
        bad = [verdict for verdict in verdicts if verdict.error != "WeightFileError"]
        slowest, largest_growth = max(v.seconds for v in verdicts), max(v.megabytes for v in verdicts)
        if bad or marker.exists():
            sys.exit(f"not refused, or code was run ({marker.exists()}): {bad}")
        print(f"{count} hostile files refused, slowest {slowest:.2f} s, largest growth {largest_growth:.0f} MB")


if __name__ == "__main__":
    main()
