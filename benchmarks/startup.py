"""How long the programs take to show help and to refuse bad input, compared with a bare `import numpy`.

    python -m benchmarks.startup [--commands train_help ...] [--turns 11] [--json]

The commands run by turns, each in a new process, so that a busy moment of the machine meets all of them. The values are
medians of wall times, and their ratios to the median of the bare import. A command that ends with another exit status
than it should ends the measurement. The first turn fills caches and is not counted.
"""

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path
from statistics import median
from typing import NamedTuple

from hebbes.statistics.table import format_table

ROOT = Path(__file__).resolve().parent.parent
BARE = "bare"
HELP, REFUSED, UNKNOWN = 4, 4, 10
"""Largest ratios that we accept: of help, of refused options, and of an environment that nobody knows."""


class Command(NamedTuple):
    """A command line, its exit status, and the largest ratio that we accept."""

    arguments: tuple[str, ...]
    status: int = 0
    bar: float | None = None


COMMANDS = {BARE: Command(("-c", "import numpy"))}
for _trainer in ("static", "hebbian"):
    _script, _on_cart_pole = f"train_{_trainer}.py", ("--environment", "CartPole-v1")
    COMMANDS |= {
        f"{_trainer}_help": Command((_script, "--help"), 0, HELP),
        f"{_trainer}_help_all": Command((_script, "--help_all"), 0, HELP),
        f"{_trainer}_bad_value": Command((_script, *_on_cart_pole, "--sigma", "-1"), 2, REFUSED),
        f"{_trainer}_unknown_flag": Command((_script, *_on_cart_pole, "--sgima", "1"), 2, REFUSED),
        f"{_trainer}_unknown_environment": Command((_script, "--environment", "Nope-v0"), 2, UNKNOWN),
    }
COMMANDS["evaluate_help"] = Command(("evaluate_static.py", "--help"), 0, HELP)


def main() -> None:
    """Prints the measured values."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    names = [name for name in COMMANDS if name != BARE]
    parser.add_argument("--commands", nargs="+", choices=names, help="commands to measure (default: all)")
    parser.add_argument("--turns", type=int, default=11, help="turns that are counted (default: 11)")
    parser.add_argument("--json", action="store_true", help="print one JSON object and nothing else")
    arguments = parser.parse_args()
    if arguments.turns < 1:
        parser.error(f"turns must be >= 1, got {arguments.turns}")
    seconds = measure([BARE, *(arguments.commands or names)], arguments.turns)
    if arguments.json:
        print(json.dumps(seconds))
    else:
        print(format_rows(seconds))


def measure(names: list[str], turns: int) -> dict[str, float]:
    """Median seconds of each command."""
    seconds: dict[str, list[float]] = {name: [] for name in names}
    for _ in range(turns + 1):
        for name in names:
            seconds[name].append(measure_once(name))
    return {name: median(values[1:]) for name, values in seconds.items()}


def measure_once(name: str) -> float:
    """Seconds of one command; ends the program if its exit status is wrong."""
    started = time.perf_counter()
    done = run(COMMANDS[name])
    seconds = time.perf_counter() - started
    if done.returncode != COMMANDS[name].status:
        sys.exit(f"{name} ended with status {done.returncode}, not {COMMANDS[name].status}:\n{done.stderr}")
    return seconds


def run(command: Command) -> subprocess.CompletedProcess[str]:
    """Runs a command to its end."""
    return subprocess.run([sys.executable, *command.arguments], capture_output=True, text=True, cwd=ROOT)  # noqa: S603


def format_rows(seconds: dict[str, float]) -> str:
    """One line a command: its median seconds, their ratio to the bare import, and the bar with whether it is kept."""
    rows = []
    for name, value in seconds.items():
        ratio, bar = value / seconds[BARE], COMMANDS[name].bar
        verdict = ("", "") if bar is None else (f"{bar:g}", "kept" if ratio <= bar else "missed")
        rows.append((name, f"{value:.3f}", f"{ratio:.2f}", *verdict))
    return format_table(("command", "seconds", "ratio", "bar", ""), rows)


if __name__ == "__main__":
    main()
