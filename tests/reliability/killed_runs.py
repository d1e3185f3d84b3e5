"""Runs that are killed at random moments, resumed until they end, and compared with an undisturbed run."""

import itertools
import json
import os
import signal
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from training_process import (
    TrainingProcess,
    check_files,
    find_differences,
    find_temporary_files,
    read_generation,
    wait_for_generation,
)

from tests.python_process import run_python
from tests.waiting import wait_until

GYMNASIUM = "--backend gymnasium --engine workers --threads 2 --chunk_size 2"
CONFIGURATIONS = {
    "CartPole-v1": "--popsize 8 --generations 120 --max_episode_steps 100 --checkpoint_every 2 --eval_every 3 "
    "--observation_normalization",
    "HalfCheetah-v5": "--popsize 8 --generations 60 --max_episode_steps 60 --checkpoint_every 10 --eval_every 7",
    "CarRacing-v3": "--popsize 4 --generations 30 --max_episode_steps 45 --checkpoint_every 1 --eval_every 15 "
    "--eval_episodes 1",
    "Pong-v5": "--popsize 4 --generations 30 --max_episode_steps 80 --checkpoint_every 3 --eval_every 20 "
    "--eval_episodes 1",
    "Pendulum-v1": f"--popsize 8 --generations 60 --max_episode_steps 50 --checkpoint_every 3 --eval_every 4 "
    f"{GYMNASIUM}",
}
"""Environment -> options of its run, which takes a few seconds. The last one has worker processes."""

MOMENTS = ("generation", "start", "write")
"""Moments of kills, in turn: a random time within or after a generation, a random time while the process starts, and
the moment when a temporary file exists."""


def kill_at_operations(trainer, every, folder, tell):
    """Kills a run of `trainer` at every so many of its operations on files, and its resumes; asserts equal ends."""
    done = run_python("-m", "tests.reliability.killed_writes", trainer, folder, every, timeout=3000)
    found = json.loads(done.stdout)
    tell(
        f"Scripted-v0, {trainer}: {found['kills']} kills at {found['operations']} operations on files "
        f"and in the resumes, {'NOT EQUAL' if found['wrong'] else 'EQUAL'}",
        kills=found["kills"],
    )
    assert found["wrong"] == [], done.stderr
    assert found["operations"] > 30


def make_flags(environment):
    """The options of an environment's run."""
    options = CONFIGURATIONS[environment].split()
    return ["--environment", environment, "--test_episodes", "0", "--eval_episodes", "2", "--threads", "2", *options]


@dataclass
class KilledRun:
    """A run in the folder `top` that is killed again and again; `counts` says when and what was killed."""

    environment: str
    top: Path
    rng: np.random.Generator

    def __post_init__(self):
        self.counts = Counter()
        self._longest_survival = 0.0
        self.whole = self.top / self.environment / "whole"
        self.folder = self.top / self.environment / "killed"

    def execute(self, kills):
        """Runs once undisturbed and once with this number of kills; returns the names of what differs at the end."""
        self._run_whole()
        total = read_generation(self.whole)
        targets = np.sort(self.rng.integers(1, total - 2, kills))
        for target, moment in zip(targets, itertools.cycle(MOMENTS), strict=False):
            self._kill_once(min(max(int(target), read_generation(self.folder) + 1), total - 1), moment)
        process = self._start()
        assert process.finish() == 0, process.output
        assert not process.find_left_behind()
        assert not find_temporary_files(self.folder)
        return find_differences(self.folder, self.whole)

    def format_line(self, found):
        """The counts and the result in a line."""
        counted = ", ".join(f"{name} {count}" for name, count in sorted(self.counts.items()) if name != "kills")
        verdict = f"NOT EQUAL: {', '.join(found)}" if found else "EQUAL"
        return (
            f"{self.environment}: {self.counts['kills']} kills ({counted}), "
            f"last worker gone after {self._longest_survival:.1f} s, {verdict}"
        )

    def _run_whole(self):
        began = time.monotonic()
        process = self._start(self.whole)
        wait_for_generation(process, self.whole, 1)
        self._start_seconds = time.monotonic() - began
        assert process.finish() == 0, process.output
        generations = read_generation(self.whole) - 1
        self._generation_seconds = (time.monotonic() - began - self._start_seconds) / generations

    def _start(self, folder=None):
        """Starts the run, or resumes it if its folder exists."""
        output = self.top / "output.txt"
        folder = folder or self.folder
        if folder.exists():
            self.counts["resumes"] += 1
            return TrainingProcess(["--resume", folder], output)
        return TrainingProcess([*make_flags(self.environment), "--folder", self.top, "--run_name", folder.name], output)

    def _kill_once(self, target, moment):
        process, before = self._start(), read_generation(self.folder)
        if moment == "start":
            time.sleep(self.rng.uniform(0, self._start_seconds))
        else:
            alive = wait_for_generation(process, self.folder, target)
            if alive and moment == "generation":
                self._kill_a_worker(process, target)
                time.sleep(self.rng.uniform(0, 2 * self._generation_seconds))
            elif alive:
                self._stop_at_write(process)
        process.send(signal.SIGKILL)
        status = process.finish()
        assert status in (-signal.SIGKILL, 0), process.output
        if status:
            self.counts["kills"] += 1
            self.counts["in training" if read_generation(self.folder) > before else "in start-up"] += 1
        ended = time.monotonic()
        left = process.find_left_behind()
        self._longest_survival = max(self._longest_survival, time.monotonic() - ended)
        assert not left, f"{self.environment}: processes {left} outlived their parent"
        check_files(self.folder)

    def _stop_at_write(self, process):
        """Halts the process as soon as a temporary file exists, so that the kill interrupts the write."""
        wait_until(lambda: find_temporary_files(self.folder) or not process.is_running, 10.0, interval=0.0)
        process.send(signal.SIGSTOP)
        if find_temporary_files(self.folder):
            self.counts["of these in a write"] += 1

    def _kill_a_worker(self, process, target):
        """Kills one worker if there are any. The run goes on with a new one."""
        workers = process.find_workers()
        if workers:
            os.kill(int(self.rng.choice(workers)), signal.SIGKILL)
            self.counts["workers killed"] += 1
            wait_for_generation(process, self.folder, target + 1)
