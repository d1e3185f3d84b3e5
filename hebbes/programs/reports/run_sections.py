"""The runs of a report, and how their options differ."""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from jaxtyping import Float64

from hebbes.options.method import find_method
from hebbes.options.texts import format_options
from hebbes.programs.list_runs import HEADER, format_run
from hebbes.programs.run_environments import describe_run_environment
from hebbes.recording.metrics import METRICS_CSV, read_metrics
from hebbes.recording.standard_output import make_printable
from hebbes.reporting.page.contents import Block, Section, Table, Text
from hebbes.training.run_folder import COMMAND_TXT
from hebbes.training.run_status import RunStatus
from hebbes.training.saved_runs import SavedRun

_MAX_COMMANDS = 20_000
"""Characters of command.txt, to which every resume adds."""


@dataclass(frozen=True)
class ReportedRun:
    """A run that can be read."""

    name: str
    """What the report calls it."""
    saved: SavedRun
    method: str
    """The label of its method among those in its environment."""
    metrics: Mapping[str, Float64[np.ndarray, " units"]]
    """Empty if it has none yet."""


def read_runs(listed: Sequence[RunStatus]) -> list[ReportedRun]:
    """The runs of the list that are not damaged, called by their number in the list and their path in what has all."""
    common = os.path.commonpath([each.folder.absolute().parent for each in listed]) if listed else ""
    return [
        ReportedRun(
            f"{number}  {make_printable(os.path.relpath(each.folder.absolute(), common))}",
            each.run,
            make_printable(each.method),
            _read_metrics(each.folder),
        )
        for number, each in enumerate(listed, 1)
        if each.run is not None
    ]


def _read_metrics(folder: Path) -> Mapping[str, Float64[np.ndarray, " units"]]:
    try:
        return read_metrics(folder / METRICS_CSV)
    except (OSError, ValueError):  # none yet, damaged, or not to be read
        return {}


def group_runs(runs: Sequence[ReportedRun]) -> dict[str, dict[str, list[ReportedRun]]]:
    """Environment -> label of each method -> its runs."""
    groups: dict[str, dict[str, list[ReportedRun]]] = {}
    for run in runs:
        methods = groups.setdefault(make_printable(describe_run_environment(run.saved)), {})
        methods.setdefault(run.method, []).append(run)
    return groups


def make_runs_section(listed: Sequence[RunStatus], runs: Sequence[ReportedRun]) -> Section:
    """All runs with their states, and the commands that started them."""
    rows = [[str(number), *format_run(str(each.folder), each)] for number, each in enumerate(listed, 1)]
    empty = [run.name for run in runs if not run.metrics]
    remarks = [Text(f"Without metrics that can be read: {', '.join(empty)}.")] if empty else []
    commands = "\n\n".join(f"{run.name}\n{_read_commands(run)}" for run in runs)
    table = Table("State of the runs", ("number", *HEADER), rows)
    return Section("Runs", [table, *remarks, Text(commands, title="Commands and versions")])


def _read_commands(run: ReportedRun) -> str:
    try:
        with (run.saved.folder / COMMAND_TXT).open(errors="replace") as file:
            return "\n".join(map(make_printable, file.read(_MAX_COMMANDS).splitlines()))
    except OSError:
        return ""


def make_options_section(runs: Sequence[ReportedRun]) -> Section:
    """The options in which methods differ, those in which runs of a method differ, and those that all runs have."""
    texts = {run.name: format_texts(run) for run in runs}
    names = dict.fromkeys(name for found in texts.values() for name in found)
    values = {name: list(dict.fromkeys(each[name] for each in texts.values() if name in each)) for name in names}
    blocks: list[Block] = []
    hidden: set[str] = set()
    for environment, methods in group_runs(runs).items():
        tables = list(_compare_methods(environment, {label: found[0] for label, found in methods.items()}))
        found_here = {name for found in methods.values() for run in found for name in texts[run.name]}
        hidden |= found_here - {row[0] for table in tables for row in table.rows}
        blocks += tables
    others = [name for name, found in values.items() if len(found) > 1 and name in hidden]
    if others:
        rows = [(run, *(found.get(name, "-") for name in others)) for run, found in texts.items()]
        blocks.append(Table("Other options that differ between runs", ("run", *others), rows))
    shared = [(name, *found) for name, found in values.items() if len(found) == 1]
    blocks.append(
        Table("Options with one value in all runs that have them", ("option", "value"), shared, is_folded=True)
    )
    return Section("Configuration", blocks)


def _compare_methods(environment: str, methods: Mapping[str, ReportedRun]) -> Iterator[Table]:
    """The options in which the methods differ, of which each has one run here."""
    found = {label: find_method(run.saved.options) for label, run in methods.items()}
    names = dict.fromkeys(name for each in found.values() for name in each)
    rows = [
        (name, *map(make_printable, values))
        for name in names
        if len(set(values := [each.get(name, "-") for each in found.values()])) > 1
    ]
    if rows:
        yield Table(f"Options in which methods differ, {environment}", ("option", *found), rows)


def format_texts(run: ReportedRun) -> dict[str, str]:
    """The options of a run, as a table shows them."""
    return {name: make_printable(" ".join(values)) for name, values in format_options(run.saved.options)}
