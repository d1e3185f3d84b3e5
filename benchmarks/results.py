"""Repeats results of docs/protocol.md: trains what is missing, goes on with what was stopped, and prints the table.

    make results-hybrids
    python -m benchmarks.results hybrids --folder results --jobs 2

It says first how long it will take. Each run is a process with one thread for linear algebra. After a stop, whatever
its reason, the same command goes on. The table shows the runs that have ended so far, with the values of all seeds.
"""

import argparse
import json
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from statistics import fmean
from threading import Lock
from typing import IO, Any, NoReturn

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from hebbes.statistics.intervals import summarize
from hebbes.statistics.table import format_table
from hebbes.training.run_status import read_status

ROOT = Path(__file__).resolve().parent.parent
HYBRIDS = ("td3", "cem_rl", "p_cem_rl", "acem_rl", "one_plus_one_rl", "aes_rl")


@dataclass(frozen=True)
class Study:
    """Runs of several methods in several environments, with several seeds each."""

    program: str
    environments: Sequence[str]
    methods: Mapping[str, Mapping[str, str]]
    """Name -> its options."""
    options: Mapping[str, str]
    """Those of all runs."""
    seeds: Sequence[int]
    minutes: float
    """Of one core, for a run. An estimate: CEM-RL takes 20 ms an env step (docs/measurements.md), td3 less."""


STUDIES = {
    "hybrids": Study(
        program="train_hybrid.py",
        environments=("HalfCheetah-v5", "Swimmer-v5"),
        methods={name: {"algorithm": name} for name in HYBRIDS},
        options={"max_env_steps": "100000", "threads": "1"},
        seeds=range(5),
        minutes=30,
    ),
    "hybrids_long": Study(
        program="train_hybrid.py",
        environments=("HalfCheetah-v5",),
        methods={name: {"algorithm": name} for name in ("td3", "cem_rl", "aes_rl")},
        options={"max_env_steps": "1000000", "threads": "1"},
        seeds=range(3),
        minutes=300,
    ),
}


@dataclass(frozen=True)
class PlannedRun:
    """A run of a study."""

    environment: str
    method: str
    folder: Path
    command: Sequence[str]
    """Begins it."""

    @property
    def is_done(self) -> bool:
        """Whether it has ended and was tested."""
        return (self.folder / "test.json").exists() and read_status(self.folder).state == "ended"

    @property
    def score(self) -> float:
        """The mean return of its test."""
        return fmean(json.loads((self.folder / "test.json").read_text())["returns"])

    def find_command(self) -> Sequence[str]:
        """Begins it, or goes on with it."""
        return [*self.command[:2], "--resume", str(self.folder)] if self.folder.is_dir() else self.command


def plan(study: Study, folder: Path) -> list[PlannedRun]:
    """The runs of a study, seed by seed, so that a part of them shows all methods."""
    runs = []
    for seed, environment, method in product(study.seeds, study.environments, study.methods):
        name = f"{method}-seed{seed}"
        options = {"environment": environment, **study.options, **study.methods[method], "seed": str(seed)}
        options |= {"folder": str(folder), "run_name": name, "print_every": "10"}
        words = [word for option, value in options.items() for word in (f"--{option}", value)]
        command = [sys.executable, study.program, *words]
        runs.append(PlannedRun(environment, method, folder / environment / name, command))
    return runs


class Trainings:
    """Trains runs, several at once."""

    def __init__(self, num_jobs: int):
        self._num_jobs, self._is_over, self._lock = num_jobs, False, Lock()
        self._processes: set[subprocess.Popen[bytes]] = set()

    def do(self, runs: Sequence[PlannedRun]) -> bool:
        """Trains the runs; returns whether all have ended normally. However this ends, no process is left."""
        with ThreadPoolExecutor(self._num_jobs) as pool:
            try:
                return all(list(pool.map(self._train, runs)))
            finally:
                with self._lock:
                    self._is_over = True
                    for process in self._processes:
                        process.terminate()  # it saves its last unit

    def _train(self, run: PlannedRun) -> bool:
        run.folder.parent.mkdir(parents=True, exist_ok=True)
        with run.folder.with_suffix(".log").open("ab") as log:
            process = self._start(run, log)
            if process is None:
                return False
            print(f"begins   {run.folder}", flush=True)
            status = process.wait()
        with self._lock:
            self._processes.discard(process)
        print(f"{'ended' if status == 0 else f'status {status}':8} {run.folder}", flush=True)
        return status == 0

    def _start(self, run: PlannedRun, log: IO[bytes]) -> "subprocess.Popen[bytes] | None":
        """Starts the process of a run, which Ctrl-C does not reach. None once everything is over."""
        options: dict[str, Any] = {
            "cwd": ROOT,
            "env": {**os.environ, "OMP_NUM_THREADS": "1"},
            "start_new_session": True,
        }
        with self._lock:
            if self._is_over:
                return None
            process = subprocess.Popen(run.find_command(), stdout=log, stderr=log, **options)  # noqa: S603
            self._processes.add(process)
            return process


def format_results(runs: Sequence[PlannedRun]) -> str:
    """A row for each environment and method: its interquartile mean, and the values of its seeds."""
    rows = []
    for environment, method in dict.fromkeys((run.environment, run.method) for run in runs):
        own = [run for run in runs if (run.environment, run.method) == (environment, method)]
        scores = [run.score for run in own if run.is_done]
        iqm = f"{summarize(np.array(scores)).iqm.value:.0f}" if scores else "-"
        rows.append((environment, method, f"{len(scores)} of {len(own)}", iqm, " ".join(f"{x:.0f}" for x in scores)))
    return format_table(("environment", "method", "seeds", "IQM", "mean return of each seed"), rows)


def main() -> None:
    """Trains, and prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("study", choices=STUDIES)
    parser.add_argument("--folder", type=Path, default=Path("results"), help="folder of the runs (default: results)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="runs at once (default: all cores)")
    parser.add_argument("--table", action="store_true", help="train nothing, only print the table")
    arguments = parser.parse_args()
    if arguments.jobs < 1:
        parser.error(f"--jobs must be >= 1, got {arguments.jobs}")
    study = STUDIES[arguments.study]
    runs = plan(study, arguments.folder.absolute() / arguments.study)
    left = [run for run in runs if not run.is_done]
    is_complete = True
    if left and not arguments.table:
        hours = len(left) * study.minutes / 60
        print(f"{len(left)} of {len(runs)} runs are left, {hours:.1f} hours of one core", end="", flush=True)
        print(f", {hours / arguments.jobs:.1f} hours with {arguments.jobs} at once", flush=True)
        print("such as  " + shlex.join(left[0].command), flush=True)
        signal.signal(signal.SIGTERM, _leave)
        is_complete = Trainings(arguments.jobs).do(left)
    print(format_results(runs))
    sys.exit(0 if is_complete else 1)


def _leave(number: int, _: object) -> NoReturn:
    raise SystemExit(128 + number)


if __name__ == "__main__":
    main()
