"""Repeats results of docs/protocol.md: trains what is missing, goes on with what was stopped, and prints the table.

    make results-hybrids
    python -m benchmarks.results hybrids --folder results --jobs 2

It says first how long it will take. Each run is a process with one thread for linear algebra. After Ctrl-C,
SIGTERM or SIGHUP no process is left, and the same command goes on. The table shows the runs that have ended so far,
with the values of all seeds. A folder whose runs had other options is refused. After a change of a preset or of the
program, take a new one. With `--recorded FILE` the returns of runs that are done go to a CSV file, and runs that it
has are not repeated. So a study of days can go from one machine to the next. With `--device cuda` the gradient steps
of hybrids are computed on a GPU, and without it on the CPU, whatever the runs have begun with.
"""

import argparse
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import chain
from pathlib import Path
from tempfile import NamedTemporaryFile
from threading import Lock
from typing import IO, Any, NoReturn

import numpy as np

from benchmarks.planned_runs import PlannedRun, plan
from benchmarks.recorded_runs import RecordedRuns
from benchmarks.studies import STUDIES
from hebbes.execution.engine_options import resolve_num_threads
from hebbes.files.atomic_file import check_place, write_atomically
from hebbes.files.folder_lock import lock_folder
from hebbes.statistics.intervals import summarize
from hebbes.statistics.table import format_number, format_table

ROOT = Path(__file__).resolve().parent.parent
STOPPING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def find_runs_left(runs: Sequence[PlannedRun], recorded: RecordedRuns) -> list[PlannedRun]:
    """The runs without scores. ValueError if one begins from a run that is recorded and not here.

    That one is not repeated, because the table would show its recorded return next to that of another policy's rules.
    """
    left = [run for run in runs if not recorded.find_scores(run)]
    for run in left:
        if run.source and not (run.merged.exists() or run.source.is_done or run.source in left):
            raise ValueError(f"{run.source.folder} is recorded and not here: copy it, {run.folder.name} begins from it")
    return left


class Trainings:
    """Trains and tests runs, several at once, and records them."""

    def __init__(self, num_jobs: int, recorded: RecordedRuns):
        self._num_jobs, self._recorded, self._is_over, self._lock = num_jobs, recorded, False, Lock()
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
                if not run.is_done and not self._call("begins", run.folder, run.find_training(), log, log):
                    return False
                if not (run.is_done or self._test(run, log)):
                    return False
            self._recorded.add(run)
            return True
        except (OSError, ValueError) as error:  # such as a file of records that another program has damaged
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
        print(f"ended    {path}" if status == 0 else f"status {status} {path}, see {Path(log.name).name}", flush=True)
        return status == 0


def format_results(runs: Sequence[PlannedRun], recorded: RecordedRuns) -> str:
    """A row for each environment and method: median, interquartile mean, and the values of its seeds."""
    rows = []
    for environment, method in dict.fromkeys((run.environment, run.method) for run in runs):
        own = [run for run in runs if (run.environment, run.method) == (environment, method)]
        done = [scores for scores in (recorded.find_scores(run) for run in own) if scores]
        for case in dict.fromkeys(chain(*done)) or [environment]:
            values = [scores[case] for scores in done if case in scores]
            found = summarize(np.array(values)) if values else None
            middle = ["-", "-"] if found is None else [format_number(each.value) for each in (found.median, found.iqm)]
            rows.append((case, method, f"{len(values)} of {len(own)}", *middle, " ".join(map(format_number, values))))
    return format_table(("environment", "method", "seeds", "median", "IQM", "mean return of each seed"), rows)


def main() -> None:
    """Trains, and prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("study", choices=STUDIES)
    parser.add_argument("--folder", type=Path, default=Path("results"), help="folder of the runs (default: results)")
    parser.add_argument("--jobs", type=int, default=resolve_num_threads(-1), help="runs at once (default: all cores)")
    parser.add_argument("--recorded", type=Path, metavar="FILE", help="CSV file of runs that are done (default: none)")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu", help="of gradient steps (default: cpu)")
    parser.add_argument("--table", action="store_true", help="train nothing, only print the table")
    arguments = parser.parse_args()
    if arguments.jobs < 1:
        parser.error(f"--jobs must be >= 1, got {arguments.jobs}")
    study, folder = STUDIES[arguments.study], arguments.folder.absolute() / arguments.study
    runs = plan(study, folder, arguments.device)
    try:
        if arguments.recorded:
            check_place("--recorded", arguments.recorded)
        recorded = RecordedRuns(arguments.recorded)
        for run in runs:
            run.check()
        left = [] if arguments.table else find_runs_left(runs, recorded)
        if not arguments.table:
            folder.mkdir(parents=True, exist_ok=True)
            lock_folder(folder)
            for run in runs:
                if run.is_done:
                    recorded.add(run)
    except (OSError, ValueError) as error:
        parser.error(str(error))
    is_complete = True
    if left:
        hours = sum(study.minutes[run.environment] for run in left) / 60
        print(f"{len(left)} of {len(runs)} runs are left, {hours:.1f} hours of one core", end="", flush=True)
        print(f", {hours / arguments.jobs:.1f} hours with {arguments.jobs} at once", flush=True)
        print("such as  " + shlex.join(left[0].find_training()), flush=True)
        for number in STOPPING:
            if signal.getsignal(number) != signal.SIG_IGN:  # nohup ignores SIGHUP
                signal.signal(number, _leave)
        is_complete = Trainings(arguments.jobs, recorded).do(left)
    print(format_results(runs, recorded))
    sys.exit(0 if is_complete else 1)


def _leave(number: int, _: object) -> NoReturn:
    raise SystemExit(128 + number)


if __name__ == "__main__":
    main()
