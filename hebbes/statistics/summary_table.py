"""Text tables of evaluations: of policy files or runs, of comparisons, and of morphologies."""

from collections.abc import Mapping, Sequence

import numpy as np
from jaxtyping import Float64

from hebbes.statistics.comparison import Comparison
from hebbes.statistics.intervals import Summary, summarize
from hebbes.statistics.table import format_number, format_table

FEW_RUNS = 5
"""With fewer runs than this, there are too few different resamples for a reliable interval."""
_HEADER = ("", "mean", "IQM", "median", "std", "min", "max")


def format_runs_table(names: Sequence[str], returns_by_run: Sequence[Float64[np.ndarray, "*seeds episodes"]]) -> str:
    """A table with one line for the episodes of each run and one line over the runs."""
    rows = {str(number): format_row(summarize(returns), {}) for number, returns in enumerate(returns_by_run, 1)}
    return format_summary_table(dict(enumerate(names, 1)), rows, summarize_runs(returns_by_run))


def summarize_runs(returns_by_run: Sequence[Float64[np.ndarray, "*seeds episodes"]]) -> Summary:
    """Statistics over runs, each with the mean of its episodes. All are NaN if a run has failed episodes."""
    return summarize(np.array([returns.mean() for returns in returns_by_run]))


def format_row(summary: Summary, faults: Mapping[str, int], what: str = "episodes") -> Sequence[str]:
    """The cells of a line; if units failed, one cell that says how many and why."""
    if summary.failed:
        reasons = "; ".join(f"{reason} ({count})" for reason, count in faults.items())
        return [f"{summary.failed} of {summary.units} {what} failed" + (f": {reasons}" if reasons else "")]
    averages = (summary.mean, summary.iqm, summary.median)
    return [*map(str, averages), *map(format_number, (summary.std, summary.minimum, summary.maximum))]


def format_summary_table(names: Mapping[int, str], rows: Mapping[str, Sequence[str]], runs: Summary | None) -> str:
    """The numbered names, then a table with one line per row and, if given, one line over the runs."""
    lines = [(label, *row) for label, row in rows.items()]
    if runs is not None:
        lines.append((f"{runs.units} runs", *format_row(runs, {}, "runs")))
        if not runs.failed:
            lines.append(("", "each run counts as one value, its mean: for runs of one method with different seeds"))
        if runs.units < FEW_RUNS and not runs.failed:
            lines.append(("", f"few runs: with fewer than {FEW_RUNS}, an interval over them is not reliable"))
    return "\n".join([*(f"{position}  {name}" for position, name in names.items()), format_table(_HEADER, lines)])


def format_comparison_table(variants: Mapping[str, Comparison]) -> str:
    """A table with one line per variant, which compares it with the intact policy of its file."""
    header = ("versus the intact policy", "probability of improvement", "mean difference")
    rows = [(name, str(it.probability_of_improvement), str(it.mean_difference)) for name, it in variants.items()]
    return format_table(header, rows)


def format_morphology_table(rows: Mapping[str, Mapping[str, str]]) -> str:
    """A table with one line per row and one column per morphology; "-" if a row lacks the morphology."""
    morphologies = dict.fromkeys(morphology for cells in rows.values() for morphology in cells)
    lines = [(name, *(cells.get(morphology, "- ") for morphology in morphologies)) for name, cells in rows.items()]
    return format_table(("", *morphologies), lines)
