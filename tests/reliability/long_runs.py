"""Watches long runs from outside: memory, files and threads of a training process and its workers."""

import time
from contextlib import suppress
from dataclasses import astuple, dataclass, fields
from pathlib import Path

import numpy as np
from training_process import TrainingProcess, read_generation, wait_for_generation

INTERVAL = 0.02
"""Seconds between samples."""


@dataclass(frozen=True)
class Holding:
    """What some processes hold together."""

    kilobytes: float
    """Private memory without pages of files."""
    files: float
    threads: float
    processes: float

    def is_within(self, bound):
        """Whether no quantity is larger than in `bound`."""
        return all(ours <= theirs for ours, theirs in zip(astuple(self), astuple(bound), strict=True))

    def __str__(self):
        return ", ".join(f"{getattr(self, each.name):+g} {each.name}" for each in fields(self))


def measure_holding(pids):
    """What these processes hold now."""
    statuses = [_read_status(pid) for pid in pids]
    return Holding(
        kilobytes=sum(int(status["RssAnon"].split()[0]) for status in statuses),
        files=sum(sum(1 for _ in Path(f"/proc/{pid}/fd").iterdir()) for pid in pids),
        threads=sum(int(status["Threads"]) for status in statuses),
        processes=len(pids),
    )


def _read_status(pid):
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return dict(line.split(":\t", 1) for line in lines if ":\t" in line)


def measure_growth(flags, generations, folder):
    """What a run holds in its last tenth less what it held after a quarter, both as medians."""
    process = TrainingProcess(
        [*flags, "--generations", generations, "--folder", folder, "--run_name", "long"], folder / "output.txt"
    )
    environment = flags[flags.index("--environment") + 1]
    samples = _take_samples(process, folder / environment / "long", generations)
    assert process.finish() == 0, process.output
    assert not process.find_left_behind()
    early = [held for generation, held in samples if generations / 4 <= generation < generations * 0.35]
    late = [held for generation, held in samples if generations * 0.9 <= generation]
    assert min(len(early), len(late)) >= 5, "the run went by too fast to be watched"
    return Holding(*(np.median(late, axis=0) - np.median(early, axis=0)).tolist())


def _take_samples(process, folder, generations):
    """Pairs of a generation and what the process and its workers held then, until the last generation."""
    samples = []
    wait_for_generation(process, folder, 1)
    while process.is_running and (generation := read_generation(folder)) < generations:
        with suppress(FileNotFoundError, ProcessLookupError, KeyError):  # one of them has just ended
            samples.append((generation, astuple(measure_holding([process.pid, *process.find_workers()]))))
        time.sleep(INTERVAL)
    return samples
