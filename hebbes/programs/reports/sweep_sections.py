"""The trials of sweeps. Their settings and results are read from their folders, wherever a sweep keeps its storage."""

import re
from collections.abc import Iterator, Mapping, Sequence
from math import inf
from pathlib import Path

from hebbes.files.option_file import read_yaml
from hebbes.programs.plot import X_LABELS
from hebbes.programs.reports.curve_sections import SCORE, X, limit_points, select_curves
from hebbes.programs.reports.run_sections import ReportedRun, format_texts
from hebbes.programs.sweeps.sweep_options import SEARCHED, SWEEP_YAML, TRIAL
from hebbes.recording.standard_output import make_printable
from hebbes.reporting.page.charts import make_scatter_chart
from hebbes.reporting.page.contents import Block, Chart, Section, Table, Text
from hebbes.reporting.page.curve_charts import Line, make_curves_chart
from hebbes.statistics.curves import RunCurve
from hebbes.statistics.table import format_number
from hebbes.training.run_status import RunStatus

_RESULT = "return of the last evaluation"


def is_trial(folder: Path) -> bool:
    """Whether the folder is that of a sweep's trial."""
    return bool(re.fullmatch(rf"{TRIAL}\d+", folder.name)) and (folder.parent / SWEEP_YAML).is_file()


def make_sweep_section(trials: Sequence[ReportedRun], listed: Sequence[RunStatus]) -> Section:
    """The trials of each sweep: what varies, what came of it, and which of all that are listed cannot be read."""
    sweeps: dict[Path, list[ReportedRun]] = {}
    for trial in trials:
        sweeps.setdefault(trial.saved.folder.parent, []).append(trial)
    damaged = [each for each in listed if each.run is None]
    rows = [(make_printable(str(each.folder)), make_printable(each.reason)) for each in damaged]
    remarks = [Table("Trials that cannot be read", ("trial", "reason"), rows)] if rows else []
    return Section("Sweeps", remarks, [_show_sweep(folder, found) for folder, found in sweeps.items()])


def _read_spaces(path: Path) -> dict[str, str]:
    """What the sweep varies -> how, as the page shows them."""
    return {
        make_printable(name): make_printable(text.removeprefix(SEARCHED))
        for name, text in read_yaml(path).items()
        if isinstance(text, str) and text.startswith(SEARCHED)
    }


def _show_sweep(folder: Path, trials: Sequence[ReportedRun]) -> Section:
    try:
        spaces, remark = _read_spaces(folder / SWEEP_YAML), None
    except ValueError as error:
        spaces, remark = {}, make_printable(str(error))
    settings = {trial.name: _read_settings(trial, spaces) for trial in trials}
    curves = select_curves(trials, SCORE)
    results = {trial: float(curve.y[-1]) for trial, curve in curves.items()}
    ranked = sorted(trials, key=lambda trial: results.get(trial.name, -inf))[::-1]
    rows = [
        (
            trial.saved.folder.name,
            *settings[trial.name].values(),
            format_number(results[trial.name]) if trial.name in results else "-",
            f"{trial.saved.header.env_steps:,}",
        )
        for trial in ranked
    ]
    title = make_printable(str(folder))
    varied = "; ".join(f"{name} {space}" for name, space in spaces.items())
    blocks: list[Block] = [
        Text(f"Varied: {varied}." if remark is None else remark),
        Table(f"Trials of {title}, by their last evaluation", ("trial", *spaces, _RESULT, "env steps"), rows),
        *_draw_trials(title, curves),
    ]
    return Section(title, [*blocks, *_draw_settings(spaces, settings, results)])


def _read_settings(trial: ReportedRun, spaces: Mapping[str, str]) -> dict[str, str]:
    texts = format_texts(trial)
    return {name: texts.get(name, "-") for name in spaces}


def _draw_trials(title: str, curves: Mapping[str, RunCurve]) -> Iterator[Chart]:
    """The evaluations of all trials."""
    if curves:
        labels, lines = (X_LABELS[X], "return"), [Line("trials", curves)]
        description = "Evaluations of each trial. Those that end early were worse than others, failed, or go on."
        max_points = limit_points(len(curves))
        yield make_curves_chart(f"Trials of {title}", description, labels, lines, max_points=max_points)


def _draw_settings(
    spaces: Mapping[str, str], settings: Mapping[str, Mapping[str, str]], results: Mapping[str, float]
) -> Iterator[Chart]:
    """The results over each option that varies."""
    for name, space in spaces.items():
        values = {trial: settings[trial][name] for trial in results}
        numbers = {trial: number for trial, text in values.items() if (number := _read_number(text)) is not None}
        is_number = len(numbers) == len(values)
        points = {trial: (numbers[trial] if is_number else values[trial], result) for trial, result in results.items()}
        if points:
            is_log = space.endswith(", log") and is_number
            yield make_scatter_chart(name, "Each dot is a trial.", (name, _RESULT), points, is_log=is_log)


def _read_number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
