"""Trains the same tasks with hebbes and with other programs, for the same time on the same cores, and compares them.

    make results-peers
    python -m benchmarks.peers --environment HalfCheetah-v5 --minutes 5 --seeds 3 --results peers

It says first how long it will take. One run follows another, by turns: every peer in every environment with the first
seed, then with the next one. Each result is written to a file of its own when its run ends, and is not measured again:
take a new folder after a change of a program. Nothing else should run meanwhile. What is equal and what is not:
docs/peers.md.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict
from importlib.util import find_spec
from itertools import product
from pathlib import Path
from typing import Any, NoReturn

import gymnasium

from benchmarks.peers.measure import Plan
from benchmarks.peers.report import draw, format_results
from hebbes.files.folder_lock import lock_folder

ROOT = Path(__file__).resolve().parents[2]
ENVIRONMENTS = ("HalfCheetah-v5", "Hopper-v5", "CartPole-v1", "CarRacing-v3")
PEERS = {
    "ours": "hebbes",
    "sb3_ars": "sb3_contrib",
    "evotorch_pgpe": "evotorch",
    "es_torch": "torch",
    "reference": "torch",
}
"""Module -> the package that it needs."""


def run(plan: Plan, path: Path, lock: int) -> bool:
    """Measures in a process of its own, which leaves no other process behind; returns whether there is a result.

    The process holds the lock of the folder too. If this program is killed, it keeps another one out until it ends.
    """
    command = [sys.executable, "-m", "benchmarks.peers.measure", json.dumps(asdict(plan)), str(path.absolute())]
    with path.with_suffix(".log").open("wb") as log:
        options: dict[str, Any] = {"cwd": ROOT, "env": {**os.environ, "OMP_NUM_THREADS": "1"}, "stdout": log}
        options |= {"stderr": log, "start_new_session": True, "pass_fds": [lock]}
        process = subprocess.Popen(command, **options)  # noqa: S603
        try:
            return process.wait() == 0
        finally:
            for number in (signal.SIGINT, signal.SIGKILL):
                with suppress(ProcessLookupError, subprocess.TimeoutExpired):
                    os.killpg(process.pid, number)
                    process.wait(timeout=10)


def measure_missing(plans: Sequence[Plan], folder: Path) -> bool:
    """Measures what the folder lacks; returns whether nothing failed. ValueError if another program measures there."""
    folder.mkdir(parents=True, exist_ok=True)
    lock = lock_folder(folder)
    left = [plan for plan in plans if not (folder / plan.file_name).exists()]
    hours = sum(plan.seconds for plan in left) / 3600
    print(f"{len(left)} of {len(plans)} runs are left, {hours:.2g} hours and the evaluations", flush=True)
    is_complete = True
    for plan in left:
        path = folder / plan.file_name
        print(f"measures {path}", flush=True)
        if not run(plan, path, lock):
            is_complete = False
            print(f"failed   {path}, see {path.with_suffix('.log').name}", flush=True)
    return is_complete


def choose_peers(wanted: Sequence[str]) -> list[str]:
    """Those whose packages are installed. A line is printed for each of the others."""
    missing = [name for name in wanted if find_spec(PEERS[name]) is None]
    for name in missing:
        print(f"{name} is left out: {PEERS[name]} is not installed, see benchmarks/peers/requirements.txt", flush=True)
    return [name for name in wanted if name not in missing]


def parse_arguments() -> argparse.Namespace:
    """The arguments, checked."""
    parser = argparse.ArgumentParser(
        "python -m benchmarks.peers", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--environment", nargs="+", choices=ENVIRONMENTS, default=ENVIRONMENTS, help="default: all")
    parser.add_argument("--minutes", type=float, default=15.0, help="of training, for each run (default: 15)")
    parser.add_argument("--seeds", type=int, default=5, help="0, 1, ... (default: 5)")
    parser.add_argument("--evaluations", type=int, default=10, help="after equal parts of the time (default: 10)")
    parser.add_argument("--cores", type=int, default=2, help="for all processes of a run together (default: 2)")
    parser.add_argument("--results", type=Path, required=True, help="folder of the results")
    parser.add_argument("--peer", nargs="+", choices=PEERS, default=list(PEERS), help="default: all")
    arguments = parser.parse_args()
    available = len(os.sched_getaffinity(0))
    if not 1 <= arguments.cores <= available:
        parser.error(f"--cores must be in [1, {available}], got {arguments.cores}")
    if arguments.evaluations < 1:
        parser.error(f"--evaluations must be >= 1, got {arguments.evaluations}")
    if arguments.seeds < 1 or not 0 < arguments.minutes < float("inf"):
        parser.error(f"--seeds must be >= 1 and --minutes > 0, got {arguments.seeds} and {arguments.minutes}")
    return arguments


def main() -> None:
    """Measures what is missing, and prints the table."""
    arguments = parse_arguments()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _leave)
    if signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:  # nohup ignores it
        signal.signal(signal.SIGHUP, _leave)
    peers, seconds = choose_peers(arguments.peer), 60 * arguments.minutes
    turns = product(range(arguments.seeds), arguments.environment, peers)
    how = seconds, arguments.cores, arguments.evaluations
    plans = [Plan(name, environment, seed, *how) for seed, environment, name in turns]
    try:
        is_complete = measure_missing(plans, arguments.results)
    except (OSError, ValueError) as error:
        print(f"--results: {error}", file=sys.stderr)
        sys.exit(2)
    for environment in arguments.environment:
        show([plan for plan in plans if plan.environment == environment], environment, arguments.results)
    sys.exit(0 if is_complete else 1)


def show(plans: Sequence[Plan], environment: str, folder: Path) -> None:
    """Prints the table of an environment, and draws its learning curves, if there are results."""
    results: dict[str, list[Any]] = {}
    for plan in plans:
        if (path := folder / plan.file_name).exists():
            results.setdefault(plan.peer, []).append(json.loads(path.read_text()))
    if results:
        score = gymnasium.spec(environment).reward_threshold
        assert score is not None
        print(f"\n{environment}\n{format_results(results, score)}")
        for name in ("cpu", "hebbes"):
            found = sorted({str(run["conditions"].get(name)) for runs in results.values() for run in runs})
            if len(found) > 1:
                print(f"measured with different {name}: {', '.join(found)}")
        draw(results, environment, folder / f"{environment}.png")


def _leave(number: int, _: object) -> NoReturn:
    raise SystemExit(128 + number)


if __name__ == "__main__":
    main()
