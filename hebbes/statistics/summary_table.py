"""Text tables of evaluations: of policy files or runs, of methods, of comparisons, and of morphologies."""

from collections.abc import Mapping, Sequence

import numpy as np
from jaxtyping import Float64

from hebbes.statistics.comparison import Comparison
from hebbes.statistics.intervals import Summary, summarize
from hebbes.statistics.table import format_number, format_table

FEW_RUNS = 5
"""With fewer runs than this, there are too few different resamples for a reliable interval."""
SUMMARY_COLUMNS = ("mean", "IQM", "median", "std", "min", "max")
"""What `format_row` has, in its order."""
_FEW = f"few runs: with fewer than {FEW_RUNS} of a method, an interval over them is not reliable"


def format_runs_table(names: Sequence[str], returns_by_run: Sequence[Float64[np.ndarray, "*seeds episodes"]]) -> str:
    """A table with one line for the episodes of each run of a method and one line over the runs."""
    rows = {str(number): format_row(summarize(returns), {}) for number, returns in enumerate(returns_by_run, 1)}
    return format_summary_table(dict(enumerate(names, 1)), rows, {"": dict(zip(rows, returns_by_run, strict=True))})


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


def format_summary_table(
    names: Mapping[int, str],
    rows: Mapping[str, Sequence[str]],
    methods: Mapping[str, Mapping[str, Float64[np.ndarray, "*seeds episodes"]]],
) -> str:
    """The numbered names, then a table with one line per row, and lines over the runs of each method.

    `methods` has the returns of each run of a method by its number, as a text.
    """
    lines = [(label, *row) for label, row in rows.items()]
    for label, returns_by_run in methods.items():
        runs = summarize_runs(list(returns_by_run.values()))
        lines.append(
            (f"{label}{', ' * bool(label)}{runs.units} run{'s' * (runs.units > 1)}", *format_row(runs, {}, "runs"))
        )
        if len(methods) > 1:
            values = (f"{format_number(returns.mean())} ({number})" for number, returns in returns_by_run.items())
            lines.append(("", f"values: {', '.join(values)}"))
    if methods:
        lines.append(("", "each run counts as one value, the mean of its episodes"))
    if any(1 < len(runs) < FEW_RUNS for runs in methods.values()):
        lines.append(("", _FEW))
    return "\n".join(
        [*(f"{position}  {name}" for position, name in names.items()), format_table(("", *SUMMARY_COLUMNS), lines)]
    )


def format_comparison_table(what: str, comparisons: Mapping[str, Comparison | str]) -> str:
    """A table with one line per comparison, or with a remark in its place; `what` heads the column of their names."""
    rows = [
        (name, found)
        if isinstance(found, str)
        else (name, str(found.probability_of_improvement), str(found.mean_difference))
        for name, found in comparisons.items()
    ]
    return format_table((what, "probability of improvement", "mean difference"), rows)


def format_morphology_table(rows: Mapping[str, Mapping[str, str]]) -> str:
    """A table with one line per row and one column per morphology; "-" if a row lacks the morphology."""
    morphologies = dict.fromkeys(morphology for cells in rows.values() for morphology in cells)
    lines = [(name, *(cells.get(morphology, "- ") for morphology in morphologies)) for name, cells in rows.items()]
    return format_table(("", *morphologies), lines)
