"""Repeats results of docs/protocol.md: trains what is missing, goes on with what was stopped, and prints the table.

    make results-hybrids
    python -m benchmarks.results hybrids --folder results --jobs 2

It says first how long it will take. Each run is a process with one thread for linear algebra. After Ctrl-C,
SIGTERM or SIGHUP no process is left, and the same command goes on. The table shows the runs that have ended so far,
with the values of all seeds. A folder whose runs had other options is refused. After a change of a preset or of the
program, take a new one.
"""

import argparse
import json
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from statistics import fmean
from tempfile import NamedTemporaryFile
from threading import Lock
from typing import IO, Any, NoReturn

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.studies import NUM_RULES, STUDIES, Study
from hebbes.files.atomic_file import write_atomically
from hebbes.files.folder_lock import lock_folder
from hebbes.statistics.intervals import summarize
from hebbes.statistics.table import format_table
from hebbes.training.run_folder import COMMAND_TXT
from hebbes.training.run_status import read_status

ROOT = Path(__file__).resolve().parent.parent
MORPHOLOGIES_JSON = "morphologies.json"
MORPHOLOGY_EPISODES = 100
MERGED = ".merged.dat"
OF_THE_FILES = ("--folder", "--run_name", "--print_every", "--init_from")
"""Options that say where files are, and not what is trained."""
STOPPING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@dataclass(frozen=True)
class PlannedRun:
    """A run of a study."""

    environment: str
    method: str
    folder: Path
    command: Sequence[str]
    """Begins it."""
    morphologies: Sequence[str]
    """In which the policy is played after training."""
    source: "PlannedRun | None" = None
    """The run whose rules are merged for this one."""

    @property
    def tests(self) -> Path:
        """The file of the returns: the test at the end of training, or the episodes in all morphologies."""
        return self.folder / (MORPHOLOGIES_JSON if self.morphologies else "test.json")

    @property
    def is_trained(self) -> bool:
        """Whether its training has ended normally."""
        return self.folder.is_dir() and read_status(self.folder).state == "ended"

    @property
    def is_done(self) -> bool:
        """Whether it is trained and tested."""
        return self.is_trained and self.tests.exists()

    def check(self) -> None:
        """ValueError if the folder has a run with other options, or returns that cannot be read."""
        if (self.folder / COMMAND_TXT).exists():
            wanted = read_options(shlex.join(self.command))
            found = read_options((self.folder / COMMAND_TXT).read_text().splitlines()[0])
            if found != wanted:
                raise ValueError(f"{self.folder} is of {found}, and the study has {wanted}: take another --folder")
        try:
            self.read_scores()
        except (ValueError, KeyError, TypeError):
            raise ValueError(f"{self.tests} is damaged: remove it, and it is made again") from None

    def read_scores(self) -> dict[str, float]:
        """Environment, with the morphology if there are several -> mean return. Empty if the run is not done."""
        if not self.is_done:
            return {}
        tests = json.loads(self.tests.read_text())
        if not self.morphologies:
            return {self.environment: fmean(tests["returns"])}
        return {f"{self.environment} {each['morphology']}": each["mean"] for each in tests["files"]}

    @property
    def needs_training(self) -> bool:
        """Whether its training, or the test at the end of it, is left."""
        return not (self.is_trained if self.morphologies else self.is_done)

    def find_training(self) -> Sequence[str]:
        """The command that begins the training, or goes on with it."""
        return [*self.command[:2], "--resume", str(self.folder)] if self.folder.is_dir() else self.command

    @property
    def merged(self) -> Path:
        """The policy file with merged rules from which it begins, if it has a source."""
        return self.folder.with_suffix(MERGED)

    def make_merge(self) -> Sequence[str]:
        """The command that merges the rules of its source."""
        assert self.source
        options = ["--path_weights", str(self.source.folder / "best.dat"), "--num_rules", str(NUM_RULES)]
        return [sys.executable, "-m", "hebbes", "merge", *options, "--output", str(self.merged)]

    def make_test(self) -> Sequence[str]:
        """The command that plays the policy in all morphologies, with start states that no training has."""
        program = self.command[1].replace("train", "evaluate")
        options = ["--episodes", str(MORPHOLOGY_EPISODES), "--seed", "1000", "--json", "--threads", "1"]
        return [
            sys.executable,
            program,
            "--path_weights",
            str(self.folder / "best.dat"),
            *options,
            "--damage",
            *self.morphologies,
        ]


def read_options(line: str) -> dict[str, str]:
    """The options of a command that trains, without those of the files."""
    words = shlex.split(line)[2:]
    return {name: value for name, value in zip(words[::2], words[1::2], strict=True) if name not in OF_THE_FILES}


def plan(study: Study, folder: Path) -> list[PlannedRun]:
    """The runs of a study, seed by seed, so that a part of them shows all methods. A source comes before its user."""
    runs: dict[Path, PlannedRun] = {}
    for seed, environment, (name, method) in product(study.seeds, study.minutes, study.methods.items()):
        options = {"environment": environment, **study.options, **method.options, "seed": str(seed)}
        own = folder / environment / f"{name}-seed{seed}"
        source = None
        if method.merged_from:
            source = runs[folder / environment / f"{method.merged_from}-seed{seed}"]
            options |= {"sharing": "clusters", "num_rules": str(NUM_RULES), "init_from": str(own.with_suffix(MERGED))}
        options |= {"folder": str(folder), "run_name": own.name, "print_every": "10"}
        words = [word for option, value in options.items() for word in (f"--{option}", value)]
        command = [sys.executable, method.program, *words]
        runs[own] = PlannedRun(environment, name, own, command, study.morphologies, source)
    return list(runs.values())


class Trainings:
    """Trains and tests runs, several at once."""

    def __init__(self, num_jobs: int):
        self._num_jobs, self._is_over, self._lock = num_jobs, False, Lock()
        self._processes: set[subprocess.Popen[bytes]] = set()

    def do(self, runs: Sequence[PlannedRun]) -> bool:
        """Trains and tests the runs; returns whether all have ended normally. It leaves no process."""
        with ThreadPoolExecutor(self._num_jobs) as pool:
            try:
                futures: dict[Path, Future[bool]] = {}
                for run in sorted(runs, key=lambda run: run.source is not None):  # those that wait come last
                    source = futures.get(run.source.folder) if run.source else None
                    futures[run.folder] = pool.submit(self._do, run, source)
                ended = [future.result() for future in futures.values()]
                return all(ended)
            finally:
                for number in STOPPING:
                    signal.signal(number, signal.SIG_IGN)
                with self._lock:
                    self._is_over = True
                    for process in self._processes:
                        process.terminate()  # it saves its last unit

    def _do(self, run: PlannedRun, source: "Future[bool] | None") -> bool:
        """Merges, trains and tests, as far as that is left; returns whether all went well."""
        if source and not source.result():
            return False
        try:
            run.folder.parent.mkdir(parents=True, exist_ok=True)
            with run.folder.with_suffix(".log").open("ab") as log:
                if (
                    run.source
                    and not run.merged.exists()
                    and not self._call("merges", run.merged, run.make_merge(), log, log)
                ):
                    return False
                if run.needs_training and not self._call("begins", run.folder, run.find_training(), log, log):
                    return False
                return run.is_done or self._test(run, log)
        except OSError as error:
            print(f"failed   {run.folder}: {error}", flush=True)
            return False

    def _test(self, run: PlannedRun, log: IO[bytes]) -> bool:
        """Plays the policy in all morphologies."""
        with NamedTemporaryFile(dir=run.folder) as output:
            if not self._call("tests", run.folder, run.make_test(), output, log):
                return False
            write_atomically(run.tests, Path(output.name).read_bytes())
        return True

    def _call(self, verb: str, path: Path, command: Sequence[str], output: IO[bytes], log: IO[bytes]) -> bool:
        """Runs a process, which Ctrl-C does not reach; returns whether it ended normally.

        Once everything is over, none is started.
        """
        options: dict[str, Any] = {
            "cwd": ROOT,
            "env": {**os.environ, "OMP_NUM_THREADS": "1"},
            "start_new_session": True,
        }
        with self._lock:
            if self._is_over:
                return False
            process = subprocess.Popen(command, stdout=output, stderr=log, **options)  # noqa: S603
            self._processes.add(process)
        print(f"{verb:8} {path}", flush=True)
        status = process.wait()
        with self._lock:
            self._processes.discard(process)
        print(f"{'ended' if status == 0 else f'status {status}':8} {path}", flush=True)
        return status == 0


def format_results(runs: Sequence[PlannedRun]) -> str:
    """A row for each environment and method: its interquartile mean, and the values of its seeds."""
    rows = []
    for environment, method in dict.fromkeys((run.environment, run.method) for run in runs):
        own = [run for run in runs if (run.environment, run.method) == (environment, method)]
        done = [scores for scores in (run.read_scores() for run in own) if scores]
        for case in done[0] if done else [environment]:
            values = [scores[case] for scores in done]
            iqm = f"{summarize(np.array(values)).iqm.value:.0f}" if values else "-"
            rows.append((case, method, f"{len(values)} of {len(own)}", iqm, " ".join(f"{x:.0f}" for x in values)))
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
    study, folder = STUDIES[arguments.study], arguments.folder.absolute() / arguments.study
    runs = plan(study, folder)
    try:
        for run in runs:
            run.check()
        if not arguments.table:
            folder.mkdir(parents=True, exist_ok=True)
            lock_folder(folder)
    except (OSError, ValueError) as error:
        parser.error(str(error))
    left = [run for run in runs if not run.is_done]
    is_complete = True
    if left and not arguments.table:
        hours = sum(study.minutes[run.environment] for run in left) / 60
        print(f"{len(left)} of {len(runs)} runs are left, {hours:.1f} hours of one core", end="", flush=True)
        print(f", {hours / arguments.jobs:.1f} hours with {arguments.jobs} at once", flush=True)
        print("such as  " + shlex.join(left[0].command), flush=True)
        for number in STOPPING:
            if signal.getsignal(number) != signal.SIG_IGN:  # nohup ignores SIGHUP
                signal.signal(number, _leave)
        is_complete = Trainings(arguments.jobs).do(left)
    print(format_results(runs))
    sys.exit(0 if is_complete else 1)


def _leave(number: int, _: object) -> NoReturn:
    raise SystemExit(128 + number)


if __name__ == "__main__":
    main()
