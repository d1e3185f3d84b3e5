"""Compares short runs of this code with those of an earlier commit: every number that they leave must be the same.

    python -m tests.compare_results COMMIT [NAME ...]

plays each run of `RUNS` (or those named) with the code of COMMIT and with today's, and compares the arrays of
`latest.dat` and the columns of `metrics.csv`, except those that measure time. `FORMER_COLUMNS` maps renamed columns.
The runs use flags that both versions know. The status is 1 if any run differs.
"""

import argparse
import csv
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from safetensors.numpy import load_file

from hebbes.registry.former_names import FORMER_COLUMNS

ROOT = Path(__file__).resolve().parent.parent
BEFORE_THE_PACKAGE = "5fb0473"
"""The last commit whose code lay in seven packages at the root."""

SMALL = "--generations 3 --eval_episodes 2 --test_episodes 0 --threads 1 --max_episode_steps 60 --run_name run"
POPULATION = "--popsize 8"


@dataclass(frozen=True)
class Comparison:
    """A run: its script and its flags. Of a resumed one the earlier code plays the first two generations."""

    flags: str
    script: str = "train_static.py"
    resumed: bool = False


CARTPOLE = f"--environment CartPole-v1 --policy linear {POPULATION}"
CHEETAH = f"--environment HalfCheetah-v5 --preset none {POPULATION}"
TMAZE = f"--environment TMaze-v0 {POPULATION} --hidden_sizes 8"
IN_POPULATIONS = ("openai_es", "ars", "cem", "cma_es", "cr_fm_nes", "ga", "pgpe", "sep_cma_es", "snes", "xnes")
RUNS = {
    **{name: Comparison(f"{CARTPOLE} --strategy {name}") for name in IN_POPULATIONS},
    "one_plus_one": Comparison("--environment CartPole-v1 --policy linear --strategy one_plus_one"),
    "envpool": Comparison(f"{CHEETAH} --observation_normalization"),
    "gymnasium": Comparison(f"{CHEETAH} --backend gymnasium --observation_normalization"),
    "workers": Comparison(f"{CARTPOLE} --backend gymnasium --engine workers"),
    "low_rank": Comparison(f"{CHEETAH} --sampler low_rank"),
    "orthogonal": Comparison(f"{CHEETAH} --sampler orthogonal"),
    "lstm": Comparison(f"{CARTPOLE.replace('linear', 'lstm')} --recurrent_size 8"),
    "gru": Comparison(f"{CARTPOLE.replace('linear', 'gru')} --recurrent_size 8"),
    "cnn": Comparison(f"--environment CarRacing-v3 {POPULATION} --policy cnn"),
    "virtual_batch": Comparison(
        f"--environment Pong --policy conv_lstm --atari_42 --virtual_batch 4 {POPULATION} --chunk_size 4"
    ),
    "bodies": Comparison(f"--environment Ant-v5 --preset none --bodies none right {POPULATION}"),
    "num_interactions": Comparison(f"{CARTPOLE} --num_interactions 400"),
    "adam": Comparison(f"{CHEETAH} --optimizer adam --episode_seeds independent"),
    "z_score": Comparison(f"{CHEETAH} --fitness_shaping z_score --reward_shift -1"),
    "bullet": Comparison(f"--environment AntBulletEnv-v0 {POPULATION}"),
    "resumed": Comparison(f"{CHEETAH} --observation_normalization --optimizer adam", resumed=True),
    "hebbian": Comparison(f"--environment CartPole-v1 {POPULATION}", "train_hebbian.py"),
    "hebbian_cnn": Comparison(f"--environment CarRacing-v3 {POPULATION} --hidden_sizes 8", "train_hebbian.py"),
    "hebbian_modulated": Comparison(f"{TMAZE} --modulation reward --eligibility", "train_hebbian.py"),
    "hebbian_normalized": Comparison(f"{TMAZE} --normalisation max_abs --hebb_rule ABCD", "train_hebbian.py"),
    "hebbian_resumed": Comparison(f"{TMAZE} --sharing neuron --strategy pgpe", "train_hebbian.py", resumed=True),
}


def main() -> None:
    """Compares the runs that the command line names, and says of each whether it is the same."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("commit", help="the earlier commit")
    parser.add_argument("names", nargs="*", help=f"runs to compare (default: all): {', '.join(RUNS)}")
    options = parser.parse_args()
    if unknown := set(options.names) - RUNS.keys():
        parser.error(f"unknown runs: {', '.join(sorted(unknown))}")
    num_different = 0
    with checked_out(options.commit) as earlier:
        for name in options.names or RUNS:
            differences = compare_run(RUNS[name], earlier)
            num_different += bool(differences)
            print(f"{name:20} {'; '.join(differences) or 'equal'}", flush=True)
    sys.exit(num_different > 0)


@contextmanager
def checked_out(commit: str) -> Iterator[Path]:
    """A folder with the files of a commit, which is removed in the end."""
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder) / "earlier"
        tree.mkdir()
        archive = subprocess.run(["git", "-C", ROOT, "archive", commit], check=True, capture_output=True).stdout
        subprocess.run(["tar", "-x", "-C", tree], input=archive, check=True)
        yield tree


def compare_run(run: Comparison, earlier: Path) -> list[str]:
    """What differs between the run of the earlier code and that of today's; nothing where they are equal."""
    with tempfile.TemporaryDirectory() as folder:
        old = play(run, earlier, earlier, Path(folder) / "old")
        new = play(run, earlier, ROOT, Path(folder) / "new")
        return [*compare_arrays(old / "latest.dat", new / "latest.dat"), *compare_metrics(old, new)]


def play(run: Comparison, earlier: Path, tree: Path, folder: Path) -> Path:
    """Trains with the code in `tree`, which goes on with what the earlier code began; returns the folder of the run."""
    arguments = [*SMALL.split(), *run.flags.split(), "--folder", str(folder)]
    if run.resumed:
        _call(earlier, run.script, [*arguments, "--generations", "2"])
        (made,) = folder.glob("*/run")
        _call(tree, run.script, ["--resume", str(made), "--generations", "3"])
    else:
        _call(tree, run.script, arguments)
    (made,) = folder.glob("*/run")
    return made


def _call(tree: Path, script: str, arguments: list[str]) -> None:
    done = subprocess.run([sys.executable, script, *arguments], cwd=tree, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{script} {' '.join(arguments)} in {tree} ended with {done.returncode}:\n{done.stderr}")


def compare_arrays(old: Path, new: Path) -> list[str]:
    """The arrays of two policy files that do not have the same bits."""
    left, right = load_file(old), load_file(new)
    if left.keys() != right.keys():
        return [f"arrays {sorted(left)} and {sorted(right)}"]
    return [f"array {name}" for name in left if _bits(left[name]) != _bits(right[name])]


def _bits(array: np.ndarray) -> tuple[tuple[int, ...], str, bytes]:
    return array.shape, str(array.dtype), array.tobytes()


def compare_metrics(old: Path, new: Path) -> list[str]:
    """The columns of two runs that do not have the same texts, those that measure time aside."""
    left, right = (_columns(folder / "metrics.csv") for folder in (old, new))
    left = {FORMER_COLUMNS.get(name, name): cells for name, cells in left.items()}
    if left.keys() != right.keys():
        return [f"columns {sorted(left.keys() ^ right.keys())}"]
    return [f"column {name}" for name in left if left[name] != right[name]]


def _columns(path: Path) -> dict[str, list[str]]:
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    return {name: [row[name] for row in rows] for name in rows[0] if "second" not in name}


if __name__ == "__main__":
    main()
