"""The table and the figure of the peers' results."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.peers.measure import EPISODES, MINUTES
from hebbes.reporting.figure import write_figure
from hebbes.reporting.method_plots import make_curves_figure
from hebbes.statistics.curves import RunCurve
from hebbes.statistics.intervals import summarize
from hebbes.statistics.table import format_number, format_table

Results = Mapping[str, Sequence[Mapping[str, Any]]]
"""Peer -> the results of its seeds."""


def read_curve(result: Mapping[str, Any]) -> RunCurve:
    """Minutes and mean returns."""
    seconds, _, returns = np.array(result["points"], np.float64).T
    return RunCurve(seconds / 60, returns)


def format_results(results: Results, score: float) -> str:
    """A row for each peer. Returns between two evaluations are interpolated."""
    budget = max(result["plan"]["seconds"] for runs in results.values() for result in runs) / 60
    minutes = [each for each in MINUTES if each < budget] + [budget]
    header = ("peer", "seeds", "env steps/s", *(f"return, {each:g} min" for each in minutes), f"minutes to {score:g}")
    rows = [format_row(name, runs, minutes, score) for name, runs in results.items() if runs]
    return f"{format_table(header, rows)}\ninterquartile means of the seeds, with 95 % intervals"


def format_row(name: str, runs: Sequence[Mapping[str, Any]], minutes: Sequence[float], score: float) -> tuple[str, ...]:
    """The row of a peer."""
    curves, ends = [read_curve(run) for run in runs], [run["points"][-1] for run in runs]
    speeds = [env_steps / seconds for seconds, env_steps, _ in ends]
    returns = [[np.interp(each, curve.x, curve.y) for curve in curves] for each in minutes]
    cells = [str(summarize(np.array(values)).iqm) for values in (speeds, *returns)]
    return name, str(len(runs)), *cells, format_times([find_time(curve, score) for curve in curves])


def find_time(curve: RunCurve, score: float) -> float:
    """Minutes of the first evaluation with at least this score; infinity if there is none."""
    return float(next((x for x, y in zip(curve.x, curve.y, strict=True) if y >= score), np.inf))


def format_times(times: Sequence[float]) -> str:
    """The median, where seeds without the score count as later than all others, and how many seeds have it."""
    reached = sum(map(np.isfinite, times))
    median = float(np.quantile(times, 0.5, method="higher"))
    return f"{format_number(median)}, {reached} of {len(times)}"


def draw(results: Results, environment: str, path: Path) -> None:
    """Draws the returns over the time of training."""
    methods = {name: [read_curve(run) for run in runs] for name, runs in results.items() if runs}
    labels = ("minutes of training", f"mean return of {EPISODES} episodes")
    write_figure(make_curves_figure(environment, "", labels, methods, "iqm"), path)
