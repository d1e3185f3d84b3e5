"""Tables: of summaries, a line for each policy file, variant or run and one over all; of variants; of bodies."""

from collections.abc import Mapping, Sequence

import numpy as np
from jaxtyping import Float64

from hebbes.statistics.comparison import Comparison
from hebbes.statistics.intervals import Summary, summarize
from hebbes.statistics.table import number, table

FEW_RUNS = 5
"""Below this many runs there are too few different resamples for an interval to be one."""
_HEADER = ("", "mean", "IQM", "median", "std", "min", "max")


def runs_table(names: Sequence[str], returns_by_run: Sequence[Float64[np.ndarray, "*seeds episodes"]]) -> str:
    """The figures of each run's episodes, then those over the runs."""
    rows = {str(number): row_of(summarize(returns), {}) for number, returns in enumerate(returns_by_run, 1)}
    return summary_table(dict(enumerate(names, 1)), rows, runs_summary(returns_by_run))


def runs_summary(returns_by_run: Sequence[Float64[np.ndarray, "*seeds episodes"]]) -> Summary:
    """Figures over runs, each with the mean of its episodes; all NaN when a run has failed episodes."""
    return summarize(np.array([returns.mean() for returns in returns_by_run]))


def row_of(figures: Summary, faults: Mapping[str, int], what: str = "episodes") -> Sequence[str]:
    """The cells of a line, or why there are no figures: how many failed, and why."""
    if figures.failed:
        reasons = "; ".join(f"{reason} ({count})" for reason, count in faults.items())
        return [f"{figures.failed} of {figures.units} {what} failed" + (f": {reasons}" if reasons else "")]
    averages = (figures.mean, figures.iqm, figures.median)
    return [*map(str, averages), *map(number, (figures.std, figures.minimum, figures.maximum))]


def summary_table(names: Mapping[int, str], rows: Mapping[str, Sequence[str]], runs: Summary | None) -> str:
    """The names by their numbers, then a line of figures for each row, then one over all if given."""
    lines = [(label, *row) for label, row in rows.items()]
    if runs is not None:
        lines.append((f"{runs.units} runs", *row_of(runs, {}, "runs")))
        if not runs.failed:
            lines.append(("", "a run's mean is one value: for runs of one method with different seeds"))
        if runs.units < FEW_RUNS and not runs.failed:
            lines.append(("", f"few runs: with fewer than {FEW_RUNS}, an interval over them is barely one"))
    return "\n".join([*(f"{position}  {name}" for position, name in names.items()), table(_HEADER, lines)])


def comparison_table(variants: Mapping[str, Comparison]) -> str:
    """A line for each variant: how it did beside the intact policy of its file."""
    header = ("beside the intact policy", "probability of improvement", "mean difference")
    rows = [(name, str(it.probability_of_improvement), str(it.mean_difference)) for name, it in variants.items()]
    return table(header, rows)


def body_table(rows: Mapping[str, Mapping[str, str]]) -> str:
    """A line for each row, a column for each body that any row has; "-" where a row lacks it."""
    bodies = dict.fromkeys(body for cells in rows.values() for body in cells)
    return table(("", *bodies), [(name, *(cells.get(body, "- ") for body in bodies)) for name, cells in rows.items()])
