"""If the disk is full or becomes read-only, training goes on and says what it could not save."""

import re
import signal
import subprocess
import time
from pathlib import Path

import pytest
from training_process import (
    TrainingProcess,
    check_files,
    find_differences,
    find_temporary_files,
    load_checkpoints,
    read_generation,
    wait_for_generation,
)

from tests.python_process import ROOT
from tests.waiting import wait_until

pytestmark = pytest.mark.slow

CARTPOLE = [
    *("--environment", "CartPole-v1", "--popsize", "8", "--max_episode_steps", "50", "--threads", "1"),
    *("--eval_every", "5", "--eval_episodes", "2", "--checkpoint_every", "2", "--test_episodes", "0"),
    *("--generations", "400"),
]


class SmallDisk:
    """A small disk, mounted at `inside` in its own mount namespace. From outside, its files are below `path`."""

    def __init__(self, inside, kilobytes=400):
        self.inside = inside
        inside.mkdir()
        mount = f"mount -t tmpfs -o size={kilobytes}k tmpfs '{inside}' && echo mounted && exec sleep 600"
        self._holder = subprocess.Popen(
            ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", mount],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        said = self._holder.stdout.readline()
        if said != "mounted\n":
            self.close()
            pytest.skip(f"no disk can be mounted here: {said.strip()}")
        self.path = Path(f"/proc/{self._holder.pid}/root{inside}")
        enter = ["nsenter", "--target", str(self._holder.pid), "--user", "--mount", "--preserve-credentials"]
        self._enter = [*enter, "env", f"--chdir={ROOT}"]

    def train(self, *arguments):
        return TrainingProcess(arguments, self.inside.parent / "output.txt", prefix=self._enter)

    def fill(self):
        with (self.path / "filler").open("wb", buffering=0) as file, pytest.raises(OSError, match="No space left"):
            while True:
                file.write(bytes(4096))

    def free(self):
        (self.path / "filler").unlink()

    def forbid_writing(self, folder):
        """Makes a folder read-only, except for files that are open already. Retries while a file is being written."""
        self._run("mount", "--bind", folder, folder)
        remount = ["mount", "-o", "remount,bind,ro", folder]
        assert wait_until(lambda: self._run(*remount, check=False).returncode == 0, 10)

    def allow_writing(self, folder):
        self._run("umount", "--lazy", folder)

    def close(self):
        self._holder.kill()
        self._holder.communicate()

    def _run(self, *command, check=True):
        return subprocess.run([*self._enter, *map(str, command)], check=check)


@pytest.fixture
def disk(tmp_path, request):
    made = SmallDisk(tmp_path / "disk", getattr(request, "param", 400))
    yield made
    made.close()


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A run that had no trouble."""
    top = tmp_path_factory.mktemp("whole")
    process = TrainingProcess([*CARTPOLE, "--folder", top, "--run_name", "a"], top / "output.txt")
    assert process.finish() == 0, process.output
    return top / "CartPole-v1" / "a"


def begin_run(disk):
    """A run on the disk that has reached generation 20, and its folder as seen from outside."""
    process = disk.train(*CARTPOLE, "--folder", disk.inside, "--run_name", "a")
    folder = disk.path / "CartPole-v1" / "a"
    assert wait_for_generation(process, folder, 20), process.output
    return process, folder


def wait_for_message(process, text):
    wait_until(lambda: text in process.output or not process.is_running, 60)
    assert text in process.output
    assert process.is_running, process.output


def goes_on_saving(process, folder):
    """Whether a newer checkpoint than all present ones is written in time."""
    newest = max(load_checkpoints_while_halted(process, folder))
    paths = folder / "checkpoint"
    return wait_until(lambda: any(int(path.stem) > newest for path in paths.glob("*.ckpt")), 60)


def load_checkpoints_while_halted(process, folder):
    """The checkpoints of a process, which is halted while they are read. None may be damaged."""
    process.send(signal.SIGSTOP)
    try:
        check_files(folder)
        return load_checkpoints(folder)
    finally:
        process.send(signal.SIGCONT)


def resume_to_the_end(disk, whole):
    process = disk.train("--resume", disk.inside / "CartPole-v1" / "a")
    assert process.finish() == 0, process.output
    folder = disk.path / "CartPole-v1" / "a"
    assert not find_temporary_files(folder)
    assert find_differences(folder, whole) == []


def test_a_full_disk_that_is_freed_again(disk, whole, tell):
    process, folder = begin_run(disk)
    disk.fill()
    wait_for_message(process, "not saved (No space left on device")
    full = read_generation(folder)
    assert max(load_checkpoints_while_halted(process, folder)) <= full
    disk.free()
    assert goes_on_saving(process, folder)
    assert process.finish() == 0, process.output
    assert find_differences(folder, whole) == []
    tell("fault: disk full, then freed: previous checkpoint whole, training went on and saved, EQUAL", faults=1)


def test_a_disk_that_stays_full(disk, whole, tell):
    process, folder = begin_run(disk)
    disk.fill()
    assert process.finish() == 1, process.output
    assert re.search(r"^stopped: generation \d+ could not be saved: No space left on device", process.output, re.M)
    assert "Traceback" not in process.output
    check_files(folder)
    disk.free()
    resume_to_the_end(disk, whole)
    tell("fault: disk full to the end: exit status 1, previous checkpoint whole, resumed EQUAL", faults=1)


@pytest.mark.parametrize("disk", [48], indirect=True)
def test_a_disk_too_small_for_the_learning_curve(disk, tell):
    few = [*CARTPOLE, "--generations", "6", "--policy", "linear", "--folder", disk.inside, "--run_name", "a"]
    process = disk.train(*few)
    assert process.finish() == 1, process.output
    said = process.output.splitlines()
    assert "no learning curve: No space left on device" in said
    listed = [line.split()[-1] for line in said if line.startswith(("weights ", "log ", "learning curve "))]
    assert [Path(path).name for path in listed] == ["best.dat", "latest.dat", "metrics.csv"]
    assert all((disk.path / Path(path).relative_to(disk.inside)).exists() for path in listed)
    assert said[-1].startswith("to go on        python ")
    tell("fault: disk too small for the learning curve: what is there is listed, exit status 1", faults=1)


def test_a_folder_that_turns_read_only(disk, whole, tell):
    process, folder = begin_run(disk)
    inside = disk.inside / "CartPole-v1" / "a"
    disk.forbid_writing(inside)
    wait_for_message(process, "not saved (Read-only file system")
    time.sleep(1)  # some more generations try
    disk.allow_writing(inside)
    assert goes_on_saving(process, folder)
    assert process.finish() == 0, process.output
    assert process.output.count("not saved") == 1
    assert find_differences(folder, whole) == []
    tell("fault: folder read-only for a while: training went on and saved, EQUAL", faults=1)
