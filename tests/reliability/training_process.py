"""Real training processes, which tests watch, stop and resume from outside; all from /proc, hence on Linux."""

import os
import signal
import subprocess
import sys
import time
import uuid
from pathlib import Path

import pytest

from hebbes.files.checksummed_file import decode
from hebbes.files.policy_file import load_policy
from hebbes.recording.metrics import read_metrics

ROOT = Path(__file__).parents[2]
IMPORT = ("--import", "tests.scripted")
PATIENCE = 120.0
"""Seconds after which a process that should have done something has failed."""

_MARK = "HEBBES_TEST_RUN"


class TrainingProcess:
    """`train_static.py` in a session of its own, started with `prefix` before it; its output goes to a file.

    It and all its descendants carry a mark in their environment, by which those it leaves behind are found.
    """

    def __init__(self, arguments, output, prefix=()):
        self._mark = uuid.uuid4().hex
        self._output = output
        with output.open("wb") as file:
            self._process = subprocess.Popen(
                [*prefix, sys.executable, "train_static.py", *map(str, arguments)],
                cwd=ROOT,
                # Files name the commit; nobody who commits meanwhile shall make two runs differ.
                env={**os.environ, "GIT_DIR": os.devnull, _MARK: self._mark},
                stdout=file,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self.pid = self._process.pid

    @property
    def output(self):
        return self._output.read_text(errors="replace")

    @property
    def running(self):
        return self._process.poll() is None

    def send(self, number):
        self._process.send_signal(number)

    def finish(self, timeout=PATIENCE):
        """The exit status, once it has ended; kills what does not end in time, and fails."""
        try:
            return self._process.wait(timeout)
        except subprocess.TimeoutExpired:
            os.killpg(self.pid, signal.SIGKILL)
            self._process.wait()
            pytest.fail(f"still running after {timeout:g} s: {self.output[-2000:]}")

    def relatives(self):
        """Ids of the processes that it started, and of those that they started."""
        mark = f"{_MARK}={self._mark}".encode()
        return [pid for pid in _processes() if pid != self.pid and mark in _read(pid, "environ").split(b"\0")]

    def workers(self):
        """Ids of its worker processes."""
        return [pid for pid in self.relatives() if b"spawn_main" in _read(pid, "cmdline")]

    def left_behind(self, seconds=30.0):
        """Ids of the relatives that are still there so many seconds after its end.

        A worker notices that its parent is gone once it has imported everything, which takes seconds.
        """
        wait_until(lambda: not self.relatives(), seconds)
        return self.relatives()


def _processes():
    return [int(path.name) for path in Path("/proc").iterdir() if path.name.isdecimal()]


def _read(pid, name):
    try:
        return Path(f"/proc/{pid}/{name}").read_bytes()
    except OSError:  # it has just ended
        return b""


def wait_until(condition, seconds, interval=0.01):
    """Whether the condition came true in time."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(interval)
    return True


def generations_in(folder):
    """The generation of the last whole row of a run's metrics.csv, 0 before the first."""
    try:
        with (folder / "metrics.csv").open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - 4096))
            *_, last, _ = (b"0,\n" + file.read()).split(b"\n")
    except FileNotFoundError:
        return 0
    return int(last.split(b",")[0]) if last[:1].isdigit() else 0


def wait_for_generation(process, folder, generation):
    """Whether a process got so far before it ended; fails where nothing happens."""
    reached = wait_until(lambda: generations_in(folder) >= generation or not process.running, PATIENCE)
    assert reached, f"generation {generation} of {folder} never came: {process.output[-2000:]}"
    return process.running


def checkpoints_of(folder):
    """Generation -> header and arrays of every checkpoint; ValueError for one that is damaged."""
    entries = {"config": dict, "conditions": dict, "progress": dict}
    paths = sorted((folder / "checkpoint").glob("*.ckpt"))
    return {int(path.stem): decode(path.read_bytes(), "checkpoint", entries) for path in paths}


def check_files(folder):
    """Raises ValueError if any checkpoint or policy file in a run's folder is damaged."""
    if folder.exists():
        assert checkpoints_of(folder)
        for path in folder.glob("*.dat"):
            load_policy(path, ["tests.scripted", "tests.reliability.impatient"])


def temporary_files(folder):
    """What a writer that was killed has left anywhere below a folder."""
    return sorted(str(path) for path in folder.rglob(".*.tmp"))


def outcome(folder):
    """All that must be equal, bit for bit, however often a run was interrupted."""
    header, arrays = max(checkpoints_of(folder).items())[1]
    metrics = read_metrics(folder / "metrics.csv")
    assert (metrics["update_norm"] > 0).any(), "nothing was learnt, so nothing is compared"
    return {
        "progress": {name: value for name, value in header["progress"].items() if name != "seconds"},
        **{name: (array.dtype.str, array.tobytes()) for name, array in arrays.items()},
        **{f"column {name}": column.tobytes() for name, column in metrics.items() if "second" not in name},
        **{name: (folder / name).read_bytes() for name in ("best.dat", "latest.dat")},
    }


def differences(folder, other):
    """Names of what is not equal in two runs."""
    one, two = outcome(folder), outcome(other)
    return sorted(name for name in one.keys() | two.keys() if one.get(name) != two.get(name))
