"""How often our 95 % intervals over runs miss the truth: percent of simulated comparisons of two equal methods.

    python -m benchmarks.interval_errors [--runs 5 10 20] [--comparisons 5000] [--json]

The returns of runs are normal, so that mean and IQM of a method are 0, the probability of improvement is one half, and
the mean difference is 0. An exact interval would miss them in 5 %.
"""

import argparse
import json
from collections import Counter

import numpy as np

from hebbes.statistics.comparison import compare_methods
from hebbes.statistics.intervals import summarize


def main() -> None:
    """Prints a row for each number of runs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, nargs="+", default=[5, 10, 20], help="runs of each method")
    parser.add_argument("--comparisons", type=int, default=5000, help="comparisons for each number (default 5000)")
    parser.add_argument("--json", action="store_true", help="print one JSON object and nothing else")
    arguments = parser.parse_args()
    rows = {runs: measure(runs, arguments.comparisons) for runs in arguments.runs}
    if arguments.json:
        print(json.dumps(rows))
        return
    for runs, missed in rows.items():
        print(f"{runs:4} runs  " + "  ".join(f"{name} {percent:.1f} %" for name, percent in missed.items()))


def measure(runs: int, comparisons: int) -> dict[str, float]:
    """Percent of the comparisons in which the interval of each statistic misses its true value."""
    rng, missed = np.random.default_rng(runs), Counter[str]()
    for _ in range(comparisons):
        first, second = rng.normal(size=(2, runs, 1))
        one, compared = summarize(first[:, 0]), compare_methods(first, second)
        for name, found, truth in (
            ("mean", one.mean, 0.0),
            ("IQM", one.iqm, 0.0),
            ("probability of improvement", compared.probability_of_improvement, 0.5),
            ("mean difference", compared.mean_difference, 0.0),
        ):
            missed[name] += not found.low <= truth <= found.high
    return {name: 100 * count / comparisons for name, count in missed.items()}


if __name__ == "__main__":
    main()
