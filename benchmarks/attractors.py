"""Do weights of plastic networks come to rest within an episode? The runs of `make results-attractors`, looked at.

    make results-attractors
    python -m benchmarks.attractors results/attractors/HalfCheetah-v5/*

For the `best.dat` of each run: its mean return, the mean return if learning stops at env step `FREEZE_AT`, with the
same start states and initial weights, and the mean absolute change of a weight in an env step, early and late in the
first five episodes (mean of all layers; 0 between updates).
"""

import argparse
import json
from math import nan
from pathlib import Path
from typing import Any

import numpy as np

import hebbes
from hebbes.evaluation.weight_recording import NUM_EPISODES, WeightRecording, record_weights
from hebbes.files.policy_file import read_policy_file
from hebbes.statistics.table import format_number, format_table

SEED = 1000
FREEZE_AT = 200
EARLY, LATE = (0, 100), (500, 1000)
"""Env steps."""


def look_at(run: Path, episodes: int) -> dict[str, Any]:
    """What is measured of a run's best policy."""
    path = run / "best.dat"
    saved = read_policy_file(path)
    recordings = record_weights(saved, saved.environment, episodes=NUM_EPISODES, seed=SEED, max_episode_steps=None)
    early, late = (np.mean([measure_change(each, *when) for each in recordings]) for when in (EARLY, LATE))
    intact, frozen = (
        hebbes.evaluate(path, episodes=episodes, seed=SEED, threads=1, intervention=each).mean
        for each in (None, ("freeze_at", FREEZE_AT))
    )
    changes = {"early_change": float(early), "late_change": float(late)}
    return {"run": run.name, "return": intact, "frozen": frozen, **changes}


def measure_change(recording: WeightRecording, first: int, last: int) -> float:
    """Mean absolute change of a weight in an env step, from env step `first` up to `last`; NaN if it ends earlier."""
    if len(recording.trajectories[0]) < last:
        return nan
    counted = (first <= recording.updated_at) & (recording.updated_at < last)
    return float(recording.changes[counted].mean(axis=1).sum() / (last - first))


def main() -> None:
    """Prints a row for each run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", type=Path, nargs="+", help="folders of runs")
    parser.add_argument("--episodes", type=int, default=100, help="of each policy (default: 100)")
    parser.add_argument("--json", action="store_true", help="print JSON")
    arguments = parser.parse_args()
    rows = [look_at(run, arguments.episodes) for run in arguments.runs if (run / "best.dat").exists()]
    if arguments.json:
        print(json.dumps(rows, indent=1))
        return
    titles = "run", "return", f"frozen at {FREEZE_AT}", "early change", "late change"
    print(format_table(titles, [(row["run"], *map(format_number, list(row.values())[1:])) for row in rows]))


if __name__ == "__main__":
    main()
