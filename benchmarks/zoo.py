"""The zoo: policies that are released with hebbes in hebbes/zoo/, and a table of how they were made and their scores.

    python -m benchmarks.zoo release weights/HalfCheetah-v5/mine  # adds best.dat of a run, with the run's final test
    python -m benchmarks.zoo film                                 # films the policies that have no film yet
    python -m benchmarks.zoo page                                 # writes the table of docs/zoo.md
    python -m benchmarks.zoo check                                # make zoo: plays them, status 1 if one is too bad

The check plays the first episodes of each policy's test again. On a processor of the same type linear policies give the
same returns. Others may not: the last bits of tanh have changed since. On other processors floats differ. So a policy
fails if the mean of these episodes is less than a share FALSE_ALARM of such means: those of as many returns, drawn from
those of the test with replacement.
"""

import argparse
import hashlib
import json
import math
import re
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import yaml
from jaxtyping import Float64, UInt8

import hebbes
from hebbes.contracts.randomness import Purpose, make_generator
from hebbes.evaluation.play import make_evaluation_spec, play_episode
from hebbes.execution.provenance import find_conditions
from hebbes.files.atomic_file import write_atomically
from hebbes.files.option_file import read_yaml
from hebbes.files.policy_file import read_policy_file
from hebbes.files.zoo import PREFIX, ZOO
from hebbes.reporting.video import VideoWriter, find_frame_rate
from hebbes.statistics.intervals import Estimate, summarize
from hebbes.statistics.table import format_number
from hebbes.training.final_test import TEST_JSON
from hebbes.training.run_folder import COMMAND_TXT
from hebbes.training.saved_runs import BEST

TABLE = "zoo.yaml"
"""The file of the table, next to the policies."""
DOCS = Path(__file__).resolve().parent.parent / "docs"
MARK = "<!-- Below this line the page is made by `python -m benchmarks.zoo page`. -->"

KINDS = {"train_static": "static", "train_hebbian": "plastic", "train_hybrid": "hybrid"}
"""Program that trained a policy -> its kind."""

FOLDER_FLAG = re.compile(r" --folder[ =]('[^']*'|\S+)")
"""Where the run was kept, which is no part of how its policy was made."""

TEST_EPISODES, CHECK_EPISODES = 100, 10
FALSE_ALARM, RESAMPLES = 0.001, 100_000
FILM_SECONDS, FRAMES_PER_SECOND, FILM_HEIGHT = 6, 8, 128
"""Films are small, because a repository keeps every version of them."""


def release(run: Path, zoo: Path = ZOO) -> str:
    """Adds the best policy of a run; returns its name in the zoo.

    Raises ValueError if the run has no final test of this policy with TEST_EPISODES returns.
    """
    if not (run / TEST_JSON).is_file():
        raise ValueError(f"{run} has no {TEST_JSON}: it was not tested at the end")
    saved, test = read_policy_file(run / BEST), json.loads((run / TEST_JSON).read_text())
    command, unit = FOLDER_FLAG.sub("", (run / COMMAND_TXT).read_text().splitlines()[0]), saved.provenance["unit"]
    if len(test["returns"]) != TEST_EPISODES or None in test["returns"] or test[unit] != saved.provenance[unit]:
        raise ValueError(f"{run}: {TEST_JSON} must hold {TEST_EPISODES} returns of {BEST}")
    (kind,) = (kind for program, kind in KINDS.items() if program in command)
    variant = "" if kind == "static" else f".{saved.provenance['options'].get('algorithm', kind)}"
    name, data = saved.environment.environment.replace("/", "_") + variant, (run / BEST).read_bytes()
    entry = {
        "kind": kind,
        "command": command,
        "seed": saved.provenance["seed"],
        "date": datetime.fromtimestamp((run / BEST).stat().st_mtime, UTC).date().isoformat(),
        "versions": {package: saved.provenance[package] for package in find_conditions()},
        "sha256": hashlib.sha256(data).hexdigest(),
        "test": describe_test(np.array(test["returns"])),
    }
    table = zoo / TABLE
    entries = {**(read_yaml(table) if table.exists() else {}), name: entry}
    write_atomically(zoo / f"{name}.dat", data)
    write_atomically(table, yaml.safe_dump(entries, default_flow_style=None, sort_keys=True, width=1000).encode())
    return name


def describe_test(returns: Float64[np.ndarray, " episodes"]) -> dict[str, Any]:
    """The score: mean with its 95 % interval, spread, and the lowest mean with which the check passes."""
    summary = summarize(returns)
    drawn = make_generator(0, Purpose.BOOTSTRAP).choice(returns, (RESAMPLES, CHECK_EPISODES))
    lowest = float(np.quantile(drawn.mean(axis=1), FALSE_ALARM))
    return {
        "episodes": len(returns),
        "mean": round(summary.mean.value, 2),
        "interval": [round(summary.mean.low, 2), round(summary.mean.high, 2)],
        "std": round(summary.std, 2),
        "lowest_mean": math.floor(100 * lowest) / 100,  # equal returns may differ from their mean in its last bit
    }


def check(zoo: Path = ZOO) -> bool:
    """Plays every policy and prints how it did; whether all are as good as their test."""
    print(f"mean return over {CHECK_EPISODES} episodes, and the lowest that passes")
    passed = [_check_policy(zoo / f"{name}.dat", entry) for name, entry in read_yaml(zoo / TABLE).items()]
    return all(passed)


def _check_policy(path: Path, entry: Mapping[str, Any]) -> bool:
    lowest = entry["test"]["lowest_mean"]
    try:
        found = hebbes.evaluate(path, episodes=CHECK_EPISODES, seed=entry["seed"], threads=1)
    except ValueError as error:
        print(f"{path.stem:30} FAILED: {error}", flush=True)
        return False
    passed = found.mean >= lowest  # false for NaN
    shown = f"{format_number(found.mean):>8} {format_number(lowest):>8}"
    print(f"{path.stem:30} {shown}{'' if passed else '  FAILED: ' + str(found)}", flush=True)
    return passed


def find_film(name: str) -> Path:
    """The file of a policy's film."""
    return DOCS / "zoo" / f"{name}.gif"


def film(name: str, path: Path) -> None:
    """Films the first seconds of an episode, in real time and small."""
    saved, seed = read_policy_file(PREFIX + name), read_yaml(ZOO / TABLE)[name]["seed"]
    spec, frames = make_evaluation_spec(saved.environment), 0
    rate = find_frame_rate(spec)
    every = max(1, round(rate / FRAMES_PER_SECOND))
    with VideoWriter(path, rate / every) as video:

        def show(frame: UInt8[np.ndarray, "height width 3"], _: float) -> None:
            nonlocal frames
            if frames % every == 0:
                width = round(frame.shape[1] * FILM_HEIGHT / frame.shape[0])
                video.write(cv2.resize(frame, (width, FILM_HEIGHT), interpolation=cv2.INTER_AREA))
            frames += 1

        cap = round(FILM_SECONDS * rate)
        play_episode(saved, spec, episode=0, seed=seed, max_episode_steps=cap, render_mode="rgb_array", show_frame=show)


def format_page() -> str:
    """The films with the scores, and the commands, in Markdown."""
    entries = read_yaml(ZOO / TABLE)
    header = ("film", "name", "network", "mean return", "std")
    rows = [header, ["---"] * len(header), *(_format_row(name, entry) for name, entry in entries.items())]
    commands = (
        f"- `{name}`, {entry['date']}, hebbes {entry['versions']['hebbes']}: `{entry['command']}`"
        for name, entry in entries.items()
    )
    return "\n".join((*(f"| {' | '.join(row)} |" for row in rows), "", "## Commands", "", *commands, ""))


def _format_row(name: str, entry: Mapping[str, Any]) -> tuple[str, ...]:
    policy, test = hebbes.load_policy(PREFIX + name), entry["test"]
    network = f"{entry['kind']}, {policy.num_params:,} parameters"
    score = Estimate(test["mean"], *test["interval"])
    return f"![{name}](zoo/{name}.gif)", f"`{name}`", network, str(score), format_number(test["std"])


def main() -> None:
    """Does what the first argument says."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", choices=("release", "film", "page", "check"))
    parser.add_argument("runs", nargs="*", type=Path, help="folders of runs to release")
    arguments = parser.parse_args()
    if (arguments.action == "release") != bool(arguments.runs):
        parser.error(f"release needs folders of runs, and nothing else takes them, got {arguments.action}")
    for run in arguments.runs:
        name = release(run)
        find_film(name).unlink(missing_ok=True)  # of a policy that it has replaced
        print(name)
    if arguments.action == "film":
        for name in read_yaml(ZOO / TABLE):
            if not find_film(name).exists():
                film(name, find_film(name))
    if arguments.action == "page":
        prose, _, _ = (DOCS / "zoo.md").read_text().partition(MARK)
        write_atomically(DOCS / "zoo.md", f"{prose}{MARK}\n\n{format_page()}".encode())
    sys.exit(0 if arguments.action != "check" or check() else 1)


if __name__ == "__main__":
    main()
