"""The program `runs`, which lists the runs in a folder, once or again and again."""

import json
import shutil
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from math import isfinite
from pathlib import Path
from typing import Any

from hebbes.contracts.option import check_options, option
from hebbes.environments.environment_spec import describe_environment
from hebbes.options.method import find_method, group_by_method
from hebbes.options.program_options import parse_options
from hebbes.programs.exit_status import end_cleanly_on_signals, report_errors_in_one_line
from hebbes.recording.standard_output import make_printable, print_or_exit
from hebbes.recording.terminal import can_draw
from hebbes.statistics.intervals import make_json_number
from hebbes.statistics.table import format_number, format_table
from hebbes.training.run_status import STATES, RunStatus, read_status
from hebbes.training.saved_runs import SavedRun, find_run_folders

PAUSE = 2.0  # seconds
CLEAR = "\x1b[H\x1b[2J"
"""Tells a terminal to begin again at the top of an empty screen."""
TEXTS = "run", "environment", "method"
HEADER = ("state", "env steps", "of budget", "best score", "age", "seed", *TEXTS)
"""Names may be long, and a narrow terminal cuts lines off."""
_UNITS_OF_TIME = {"d": 86_400, "h": 3_600, "min": 60}


@dataclass(frozen=True)
class RunsConfig:
    """Options of a list of runs."""

    folder: str = option("weights", "the folder with the runs")
    environment: tuple[str, ...] = option((), "list only runs in these environments, with or without the version")
    method: tuple[str, ...] = option((), "list only these methods, by name or as the list calls them")
    state: tuple[str, ...] = option(
        (),
        "list only runs in these states; ended: the budget is done, stopped: --resume goes on, damaged: no checkpoint "
        "can be used",
        choices=STATES,
    )
    check: bool = option(False, "also read the arrays of checkpoints, to notice damage in them")
    json: bool = option(False, "print one JSON object and nothing else")
    follow: bool = option(
        False, "list again every two seconds: on a terminal in the same place, elsewhere the runs that have changed"
    )

    def __post_init__(self) -> None:
        check_options(self)
        if not self.folder:
            raise ValueError("folder must name a folder, got ''")
        if self.json and self.follow:
            raise ValueError("json cannot be used with follow")


def list_runs(description: str) -> None:
    """Parses the options and lists the runs, until a signal comes if they are followed."""
    with end_cleanly_on_signals():
        with report_errors_in_one_line():
            config = RunsConfig(**parse_options(RunsConfig, sys.argv[1:], description, "folder"))
            found = find_listed(config)
        if config.json:
            print_or_exit(json.dumps({"runs": [_make_object(each) for each in found]}))
        elif not config.follow:
            print_or_exit("\n".join(_format_lines(config, found)))
        elif can_draw(sys.stdout):
            _redraw(config)
        else:
            _print_changes(config)


def find_listed(config: RunsConfig) -> list[RunStatus]:
    """The runs in the folder that the filters let through; ValueError if it holds none."""
    listed = label_runs([read_status(folder, check=config.check) for folder in find_run_folders(Path(config.folder))])
    return [each for each in listed if _is_wanted(config, each)]


def label_runs(statuses: Sequence[RunStatus]) -> list[RunStatus]:
    """The runs with the labels of their methods among those in the same environment."""
    environments: dict[str, list[SavedRun]] = {}
    for each in statuses:
        if each.run is not None:
            environments.setdefault(describe_environment(each.run.spec), []).append(each.run)
    labels: dict[Path, str] = {}
    for runs in environments.values():
        for label, positions in group_by_method([find_method(run.options) for run in runs]).items():
            labels |= {runs[position].folder: label for position in positions}
    return [replace(each, method=labels.get(each.folder, "")) for each in statuses]


def _is_wanted(config: RunsConfig, each: RunStatus) -> bool:
    environment = each.run.environment if each.run else ""
    without_version = environment.rpartition("-v")[0]
    return (
        (not config.environment or bool({environment, without_version} & set(config.environment)))
        and (not config.method or bool({each.method, each.method.partition(" ")[0]} & set(config.method)))
        and (not config.state or each.state in config.state)
    )


def _format_lines(config: RunsConfig, found: Sequence[RunStatus]) -> list[str]:
    """The table, and a line that counts the runs in each state."""
    states = [each.state for each in found]
    counts = ", ".join(f"{states.count(state)} {state}" for state in STATES if state in states)
    rows = [_format_row(config, each) for each in found]
    return [
        *format_table(HEADER, rows, TEXTS).splitlines(),
        f"{len(found)} run{'s' * (len(found) != 1)}: {counts or 'none'}",
    ]


def _format_row(config: RunsConfig, each: RunStatus) -> list[str]:
    top, folder = Path(config.folder), each.folder
    return format_run(str(folder.relative_to(top)) if folder != top else str(top), each)


def format_run(name: str, each: RunStatus) -> list[str]:
    """The cells of a run called `name`, below `HEADER`; of a damaged one its name and why."""
    name = make_printable(name)
    if each.run is None:
        return [each.state, f"{name}: {make_printable(each.reason)}"]
    share = f"{each.share_done:.0%}" if isfinite(each.share_done) else "-"
    numbers = [f"{each.env_steps:,}", share, format_number(each.best_score), _format_age(each.age)]
    described = [make_printable(text) for text in (each.run.environment, each.method)]
    return [each.state, *numbers, str(each.run.seed), name, *described]


def _format_age(seconds: float) -> str:
    for unit, size in _UNITS_OF_TIME.items():
        if seconds >= size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s" if isfinite(seconds) else "-"


def _make_object(each: RunStatus) -> Mapping[str, Any]:
    run = each.run
    plain = {"folder": str(each.folder), "state": each.state, "age": make_json_number(each.age)}
    if run is None:
        return {**plain, "reason": each.reason}
    return {
        **plain,
        "environment": run.environment,
        "method": each.method,
        "seed": run.seed,
        "env_steps": each.env_steps,
        "max_env_steps": run.options.get("max_env_steps"),
        "best_score": make_json_number(each.best_score),
        "of_budget": make_json_number(each.share_done),
    }


def _redraw(config: RunsConfig) -> None:
    """Draws the list again and again on a terminal, as much of it as there is room for."""
    while True:
        width, height = shutil.get_terminal_size()
        lines = _format_lines(config, _find_again(config))
        if len(lines) >= height:  # the last line of the screen stays empty
            lines = [*lines[: height - 3], f"... {len(lines) - height + 2} more lines", lines[-1]]
        print_or_exit(CLEAR + "\n".join(line[:width] for line in lines))
        time.sleep(PAUSE)


def _print_changes(config: RunsConfig) -> None:
    """Prints the list, and from then on the row of each run that has changed in anything else than its age."""
    before: dict[Path, list[str]] = {}
    for turn in count():
        rows = {each.folder: _format_row(config, each) for each in _find_again(config)}
        changed = [row for folder, row in rows.items() if _drop_age(before.get(folder, [])) != _drop_age(row)]
        if changed or not turn:
            lines = format_table(HEADER, changed, TEXTS).splitlines()
            print_or_exit("\n".join(lines[1:] if turn else lines))
        before = rows
        time.sleep(PAUSE)


def _drop_age(row: Sequence[str]) -> list[str]:
    place = HEADER.index("age")
    return [*row[:place], *row[place + 1 :]]


def _find_again(config: RunsConfig) -> list[RunStatus]:
    """The runs now; none if all have been deleted, or cannot be read for a moment."""
    try:
        return find_listed(config)
    except (ValueError, OSError):
        return []
