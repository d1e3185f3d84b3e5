"""The curves of a report: learning curves of methods, and every other column of metrics.csv."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

import numpy as np

from hebbes.programs.plot import X_LABELS, select_known
from hebbes.programs.reports.run_sections import ReportedRun, group_runs
from hebbes.programs.run_environments import describe_caps
from hebbes.recording.metrics import METRICS
from hebbes.reporting.method_plots import STATISTICS, format_method_label
from hebbes.reporting.page.contents import Block, Chart, Section, Text
from hebbes.reporting.page.curve_charts import Line, make_curves_chart
from hebbes.statistics.curves import RunCurve, average_runs
from hebbes.statistics.table import format_number

X, SCORE, STATISTIC = "env_steps", "eval_return", "iqm"
GROUPS: Mapping[str, tuple[str, ...]] = {
    "Returns and episodes": (
        *("return", "return_mean", "return_max", "return_min", "return_std", "mean_policy_return", "best_score"),
        *("mean_policy_rank", "episode_length", "episode_length_mean", "failed_members", "tied_share"),
        "saturated_actions",
    ),
    "Search": (
        *("sigma", "update_norm", "mean_norm", "update_over_sigma", "gradient_norm", "gradient_agreement"),
        *("learning_rate", "num_members"),
    ),
    "Gradients and evolution": (
        *("critic_loss", "q_mean", "critic_steps", "actor_steps", "replay_size", "rl_return_mean", "es_return_mean"),
        *("rl_share", "rl_parent_share", "is_rl", "mean_share", "success_rate", "mean_policy_lag"),
        "mean_policy_env_steps",
    ),
    "Time and workers": (
        *("seconds", "env_steps_per_second", "policy_seconds_share", "simulator_seconds_share"),
        *("update_seconds_share", "work_seconds", "job_wait_seconds", "nodes", "workers", "chunks_outstanding"),
        "chunks_sent_again",
    ),
}
"""Heading of a group of charts -> columns of metrics.csv. Other columns have a group of their own."""
_MAX_POINTS, _MAX_POINTS_OF_CHART, _MAX_POINTS_OF_PAGE = 500, 5_000, 30_000
"""Of a curve, of a chart, and of all charts of diagnostics together, so that the page stays small and quick."""


def make_learning_section(runs: Sequence[ReportedRun]) -> Section:
    """The evaluations during training: each method's interquartile mean over its runs, and each run."""
    blocks: list[Block] = []
    for environment, methods in group_runs(runs).items():
        lines = []
        for label, found in methods.items():
            if curves := select_curves(found, SCORE):
                line, remark = _average(label, curves)
                blocks += [Text(remark)] if remark else []
                lines.append(line)
        if not lines:
            blocks.append(Text(f"No run in {environment} has been evaluated yet."))
            continue
        notes = ["Return of the mean policy at its evaluations."]
        if any(line.runs and line.average for line in lines):
            notes.append(f"Thick: {STATISTICS[STATISTIC]} of the runs with its 95 % interval. Thin: each run.")
        if cap := describe_caps([run.saved for found in methods.values() for run in found]):
            notes.append(f"{cap.capitalize()}.")
        labels = (X_LABELS[X], "return")
        title, max_points = f"Learning in {environment}", limit_points(sum(len(line.runs) for line in lines))
        blocks.append(make_curves_chart(title, " ".join(notes), labels, lines, max_points=max_points))
    return Section("Learning curves", blocks)


def _average(label: str, curves: Mapping[str, RunCurve]) -> tuple[Line, str]:
    """The line of a method, and a remark if its runs have no range in common. A single run is its own average."""
    shown = format_method_label(label, len(curves))
    try:
        average = average_runs(list(curves.values()), STATISTIC)
    except ValueError as error:
        return Line(shown, curves), f"{label} has no average: {error}."
    return Line(shown, curves if len(curves) > 1 else {}, average), ""


def limit_points(curves: int, budget: int = _MAX_POINTS_OF_CHART) -> int:
    """The points that each of so many curves of a chart may have; at least 20."""
    return min(_MAX_POINTS, max(20, min(budget, _MAX_POINTS_OF_CHART) // max(1, curves)))


def make_diagnostics_section(runs: Sequence[ReportedRun]) -> Section:
    """A chart of every column that changes in any run, in groups."""
    grouped = {name for names in GROUPS.values() for name in names}
    columns = dict.fromkeys(name for run in runs for name in list(run.metrics)[1:] if name not in (X, SCORE))
    groups = {**GROUPS, "Other columns": tuple(name for name in columns if name not in grouped)}
    variable = {name for name in columns if _is_variable(name, runs)}
    shown = {heading: [name for name in names if name in variable] for heading, names in groups.items()}
    constant = [name for name in columns if name not in variable]
    environments = group_runs(runs)
    max_points = limit_points(len(runs), _MAX_POINTS_OF_PAGE // max(1, len(variable)))
    sections = [
        Section(
            heading,
            [
                chart
                for name in names
                for environment, methods in environments.items()
                for chart in _draw_runs(name, environment if len(environments) > 1 else "", methods, max_points)
            ],
        )
        for heading, names in shown.items()
        if names
    ]
    remarks = [_describe_constants(constant, runs)] if constant else []
    return Section("Diagnostics", [Text("Each line is a run."), *remarks], sections)


def _draw_runs(
    name: str, environment: str, methods: Mapping[str, Sequence[ReportedRun]], max_points: int
) -> Iterator[Chart]:
    lines = [Line(label, _select_with_gaps(runs, name)) for label, runs in methods.items()]  # a color for each method
    if any(line.runs for line in lines):
        labels, title = (X_LABELS[X], name), f"{name}{', ' * bool(environment)}{environment}"
        meaning = METRICS.get(name, "")
        description = f"{meaning[:1].upper()}{meaning[1:]}{'.' * bool(meaning)}"
        yield make_curves_chart(title, description, labels, lines, max_points=max_points)


def select_curves(runs: Sequence[ReportedRun], name: str) -> dict[str, RunCurve]:
    """The column over env steps of the runs that have it."""
    found = {}
    for run in runs:
        if {name, X} <= run.metrics.keys():
            with suppress(ValueError):  # it has no value yet
                found[run.name] = select_known(run.metrics, X, name, run.saved.folder)
    return found


def _select_with_gaps(runs: Sequence[ReportedRun], name: str) -> dict[str, RunCurve]:
    """The curves of a column that belongs to every row: a row without a value is a gap."""
    curves, metrics = select_curves(runs, name), {run.name: run.metrics for run in runs}
    return {
        run: replace(curve, gaps=metrics[run][X][~np.isfinite(metrics[run][name])]) for run, curve in curves.items()
    }


def _is_variable(name: str, runs: Sequence[ReportedRun]) -> bool:
    """Whether the column has more than one value in any run, or differs between runs."""
    values = [run.metrics[name] for run in runs if name in run.metrics]
    known = np.concatenate(values)
    return len(np.unique(known[np.isfinite(known)])) > 1


def _describe_constants(names: Sequence[str], runs: Sequence[ReportedRun]) -> Text:
    found = []
    for name in names:
        known = [value for run in runs for value in run.metrics.get(name, np.empty(0)).tolist() if np.isfinite(value)]
        found.append(f"{name} {format_number(known[0]) if known else 'empty'}")
    return Text(f"The same throughout: {', '.join(found)}.")
