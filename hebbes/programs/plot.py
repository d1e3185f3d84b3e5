"""The program `plot`, which draws learning curves of runs, or performance profiles of their final scores."""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from jaxtyping import Float64

from hebbes.contracts.errors import say
from hebbes.contracts.option import check_options, option
from hebbes.contracts.suggestion import suggest_name
from hebbes.files.atomic_file import check_place
from hebbes.options.method import find_method, group_by_method
from hebbes.options.program_options import parse_options
from hebbes.programs.exit_status import end_cleanly_on_signals, report_errors_in_one_line
from hebbes.programs.run_environments import describe_caps, describe_run_environment
from hebbes.recording.console import Console
from hebbes.recording.metrics import METRICS_CSV, read_last_row, read_metrics
from hebbes.recording.standard_output import make_printable, print_or_exit
from hebbes.reporting.figure import SUFFIXES, write_figure
from hebbes.reporting.method_plots import STATISTICS, make_curves_figure, make_profiles_figure
from hebbes.statistics.curves import RunCurve
from hebbes.training.saved_runs import SavedRun, find_usable_runs, read_saved_run

if TYPE_CHECKING:
    from matplotlib.figure import Figure

X_LABELS = {"env_steps": "env steps of training", "unit": "", "seconds": "wall time of training in seconds"}
"""Value of the option `x` -> label of the axis. A unit is called by its own name, such as generation."""

MetricsByRun: TypeAlias = Mapping[Path, Mapping[str, Float64[np.ndarray, " units"]]]
"""Folder of a run -> the columns of its metrics.csv."""


@dataclass(frozen=True)
class PlotConfig:
    """Options of a plot."""

    runs: tuple[str, ...] = option((), "folders of runs, of several seeds, or of several runs")
    output: str = option("learning_curves.png", "the .png or .svg file to write, also -o")
    x: str = option("env_steps", "the horizontal axis; unit is what the trainer counts", choices=tuple(X_LABELS))
    metric: str = option("eval_return", "a column of metrics.csv")
    statistic: str = option(
        "iqm", "what is drawn of the runs of a method: interquartile mean or mean", choices=tuple(STATISTICS)
    )
    profiles: bool = option(False, "draw performance profiles of the last values of the metric instead of curves")

    def __post_init__(self) -> None:
        check_options(self)
        if not self.runs or not all(self.runs):
            raise ValueError("runs must name folders of runs")
        for each in fields(self):
            if self.profiles and each.name in ("x", "statistic") and getattr(self, each.name) != each.default:
                raise ValueError(f"{each.name} has no effect on profiles, got {getattr(self, each.name)}")
        check_place("output", Path(self.output), SUFFIXES)


def plot(description: str) -> None:
    """Parses the options, draws the figure and prints its path."""
    with end_cleanly_on_signals(), Console() as console:
        with report_errors_in_one_line(), console.phase("drawing"):
            config = PlotConfig(**parse_options(PlotConfig, sys.argv[1:], description, "runs"))
            figure = make_plot(config)
            try:
                write_figure(figure, Path(config.output))
            except OSError as error:
                raise ValueError(f"output {config.output}: {error.strerror}") from error
        print_or_exit(f"plot  {config.output}")


def _has_rows(folder: Path) -> bool:
    return bool(read_last_row(folder / METRICS_CSV))


def make_plot(config: PlotConfig) -> "Figure":
    """The figure; ValueError if a run has nothing to draw, or the runs do not fit together."""
    found = [
        folder
        for path in config.runs
        for folder in find_usable_runs(Path(path), _has_rows, "it has no metrics that can be read")
    ]
    unique = [read_saved_run(folder) for folder in {each.resolve(): each for each in found}.values()]
    metrics = {run.folder: read_metrics(run.folder / METRICS_CSV) for run in unique}
    runs = _leave_out_unknown(unique, metrics, config.metric)
    title = _check_environment(runs)
    curves, unit = _select_curves({run.folder: metrics[run.folder] for run in runs}, config)
    methods = {
        make_printable(label): [curves[position] for position in positions]
        for label, positions in group_by_method([find_method(run.options) for run in runs]).items()
    }
    note = describe_caps(runs)
    if config.profiles:
        scores = {label: np.array([curve.y[-1] for curve in curves]) for label, curves in methods.items()}
        return make_profiles_figure(title, note, f"the last {config.metric}", scores)
    return make_curves_figure(title, note, (X_LABELS[config.x] or unit, config.metric), methods, config.statistic)


def _leave_out_unknown(runs: Sequence[SavedRun], metrics: MetricsByRun, metric: str) -> Sequence[SavedRun]:
    """The runs that have a value of the metric, or lack its column, or all; standard error names those left out."""
    missing = [
        run for run in runs if metric in metrics[run.folder] and not np.isfinite(metrics[run.folder][metric]).any()
    ]
    if len(missing) == len(runs):
        return runs
    for run in missing:
        say(f"left out  {make_printable(str(run.folder))}: metric {metric!r} has no finite value yet")
    return [run for run in runs if run not in missing]


def _check_environment(runs: Sequence[SavedRun]) -> str:
    """The environment of the runs; ValueError if they have several."""
    found = {describe_run_environment(run): run.folder for run in reversed(runs)}
    if len(found) > 1:
        named = ", ".join(f"{name} in {folder}" for name, folder in reversed(found.items()))
        raise ValueError(f"a plot has runs of one environment, got {named}")
    return make_printable(next(iter(found)))


def _select_curves(metrics: MetricsByRun, config: PlotConfig) -> tuple[list[RunCurve], str]:
    """The metric of each run where it has a value, and what its trainer counts."""
    curves: list[RunCurve] = []
    units: dict[str, Path] = {}
    for folder, columns in metrics.items():
        unit = next(iter(columns))
        units.setdefault(unit, folder)
        x = unit if config.x == "unit" else config.x
        for asked_by, column in (("metric", config.metric), ("x", x)):
            if column not in columns:
                hint = suggest_name(column, list(columns)) or f"; it has {', '.join(columns)}"
                raise ValueError(f"{asked_by} {column!r} is not in {folder}{hint}")
        curves.append(select_known(columns, x, config.metric, folder))
    if config.x == "unit" and len(units) > 1:
        named = ", ".join(f"{unit} in {folder}" for unit, folder in units.items())
        raise ValueError(f"x unit needs runs that count the same, got {named}")
    return curves, next(iter(units))


def select_known(metrics: Mapping[str, Float64[np.ndarray, " units"]], x: str, y: str, folder: Path) -> RunCurve:
    """The column y over the column x, where both have values; ValueError if nowhere."""
    is_known = np.isfinite(metrics[y]) & np.isfinite(metrics[x])
    if not is_known.any():
        raise ValueError(f"metric {y!r} has no value in {folder} yet")
    return RunCurve(metrics[x][is_known], metrics[y][is_known])
