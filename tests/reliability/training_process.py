"""Real training processes, which tests watch through /proc (hence on Linux only), stop and resume."""

import os
import signal
import subprocess
import sys
import uuid
from pathlib import Path

import pytest

from hebbes.files.checksummed_file import decode
from hebbes.files.policy_file import read_policy_file
from hebbes.recording.metrics import read_metrics
from tests.python_process import ROOT
from tests.training.scripted_runs import read_outcome
from tests.waiting import wait_until

IMPORT = ("--import", "tests.scripted")
PATIENCE = 120.0
"""Seconds that a test waits for a process before it fails."""

_MARK = "HEBBES_TEST_RUN"


class TrainingProcess:
    """`train_static.py` in a session of its own, whose output goes to a file. `prefix` comes before its command line.

    It and all its descendants have a mark in their environment. By this mark those that outlive it are found.
    """

    def __init__(self, arguments, output, prefix=()):
        self._mark = uuid.uuid4().hex
        self._output = output
        with output.open("wb") as file:
            self._process = subprocess.Popen(
                [*prefix, sys.executable, "train_static.py", *map(str, arguments)],
                cwd=ROOT,
                # Files hold the commit. Without git, a commit made meanwhile cannot make two runs differ.
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
    def is_running(self):
        return self._process.poll() is None

    def send(self, number):
        self._process.send_signal(number)

    def finish(self, timeout=PATIENCE):
        """Waits for the end and returns the exit status; kills the process and fails the test if it takes too long."""
        try:
            return self._process.wait(timeout)
        except subprocess.TimeoutExpired:
            os.killpg(self.pid, signal.SIGKILL)
            self._process.wait()
            pytest.fail(f"still running after {timeout:g} s: {self.output[-2000:]}")

    def find_descendants(self):
        """Ids of all its descendants."""
        mark = f"{_MARK}={self._mark}".encode()
        return [
            pid for pid in _list_processes() if pid != self.pid and mark in _read_proc_file(pid, "environ").split(b"\0")
        ]

    def find_workers(self):
        """Ids of its worker processes."""
        return [pid for pid in self.find_descendants() if b"spawn_main" in _read_proc_file(pid, "cmdline")]

    def find_left_behind(self, seconds=30.0):
        """Ids of descendants that still exist this many seconds after its end.

        A starting worker notices that its parent is gone only after all its imports, which take seconds.
        """
        wait_until(lambda: not self.find_descendants(), seconds)
        return self.find_descendants()


def _list_processes():
    return [int(path.name) for path in Path("/proc").iterdir() if path.name.isdecimal()]


def _read_proc_file(pid, name):
    try:
        return Path(f"/proc/{pid}/{name}").read_bytes()
    except OSError:  # it has just ended
        return b""


def read_generation(folder):
    """The generation of the last complete row of a run's metrics.csv, 0 before the first."""
    try:
        with (folder / "metrics.csv").open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - 4096))
            *_, last, _ = (b"0,\n" + file.read()).split(b"\n")
    except FileNotFoundError:
        return 0
    return int(last.split(b",")[0]) if last[:1].isdigit() else 0


def wait_for_generation(process, folder, generation):
    """Waits for a generation; returns whether the process still runs then. Fails if neither comes in time."""
    reached = wait_until(lambda: read_generation(folder) >= generation or not process.is_running, PATIENCE)
    assert reached, f"generation {generation} of {folder} never came: {process.output[-2000:]}"
    return process.is_running


def load_checkpoints(folder):
    """Generation -> header and arrays, of every checkpoint; ValueError if one is damaged."""
    entries = {"config": dict, "conditions": dict, "progress": dict}
    paths = sorted((folder / "checkpoint").glob("*.ckpt"))
    return {int(path.stem): decode(path.read_bytes(), "checkpoint", entries) for path in paths}


def check_files(folder):
    """ValueError if a checkpoint or policy file in a run's folder is damaged."""
    if folder.exists():
        assert load_checkpoints(folder)
        for path in folder.glob("*.dat"):
            read_policy_file(path, ["tests.scripted", "tests.reliability.impatient"])


def find_temporary_files(folder):
    """Temporary files anywhere below a folder, as a killed writer leaves them."""
    return sorted(str(path) for path in folder.rglob(".*.tmp"))


def find_differences(folder, other):
    """Names of what differs between two runs; ValueError if a checkpoint of either is damaged."""
    for each in (folder, other):
        load_checkpoints(each)
    learned = (read_metrics(folder / "metrics.csv")["update_norm"] > 0).any()
    assert learned, "nothing was learned, so nothing is compared"
    one, two = read_outcome(folder), read_outcome(other)
    return sorted(name for name in one.keys() | two.keys() if one.get(name) != two.get(name))
