"""Long runs watched from outside: what a training process and its workers hold on to."""

import time
from dataclasses import astuple, dataclass, fields
from pathlib import Path

import numpy as np
from training_process import TrainingProcess, generations_in, wait_for_generation

INTERVAL = 0.02
"""Seconds between samples."""

CARTPOLE = [
    *("--environment", "CartPole-v1", "--max_episode_steps", "5", "--popsize", "4", "--threads", "2"),
    *("--eval_every", "20", "--eval_episodes", "2", "--test_episodes", "0", "--print_every", "100"),
]


@dataclass(frozen=True)
class Holding:
    """What some processes hold, all together."""

    kilobytes: float
    """Private memory that is not the cache of a file."""
    files: float
    threads: float
    processes: float

    def within(self, bound):
        """Whether it is no more than the bound in anything."""
        return all(ours <= theirs for ours, theirs in zip(astuple(self), astuple(bound), strict=True))

    def __str__(self):
        return ", ".join(f"{getattr(self, each.name):+g} {each.name}" for each in fields(self))


def held_by(pids):
    """What these processes hold now."""
    statuses = [_status(pid) for pid in pids]
    return Holding(
        kilobytes=sum(int(status["RssAnon"].split()[0]) for status in statuses),
        files=sum(sum(1 for _ in Path(f"/proc/{pid}/fd").iterdir()) for pid in pids),
        threads=sum(int(status["Threads"]) for status in statuses),
        processes=len(pids),
    )


def _status(pid):
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return dict(line.split(":\t", 1) for line in lines if ":\t" in line)


def growth(flags, generations, folder):
    """What a run of so many generations holds in its last tenth beyond what it held after a quarter, by medians."""
    process = TrainingProcess(
        [*flags, "--generations", generations, "--folder", folder, "--run_name", "long"], folder / "output.txt"
    )
    environment = flags[flags.index("--environment") + 1]
    samples = _samples(process, folder / environment / "long", generations)
    assert process.finish() == 0, process.output
    assert not process.left_behind()
    early = [held for generation, held in samples if generations / 4 <= generation < generations * 0.35]
    late = [held for generation, held in samples if generations * 0.9 <= generation]
    assert min(len(early), len(late)) >= 5, "the run went by too fast to be watched"
    return Holding(*(np.median(late, axis=0) - np.median(early, axis=0)).tolist())


def _samples(process, folder, generations):
    """Generation, and what the process and its workers hold, until the last generation."""
    samples = []
    wait_for_generation(process, folder, 1)
    while process.running and (generation := generations_in(folder)) < generations:
        samples.append((generation, astuple(held_by([process.pid, *process.workers()]))))
        time.sleep(INTERVAL)
    return samples
