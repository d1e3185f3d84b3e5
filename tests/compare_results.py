"""Short runs of this code leave the same numbers, bit for bit, as those of an earlier commit.

    python -m pytest tests/compare_results.py [--earlier COMMIT] [-n 2] [-k NAME]

Each run of `RUNS` is played with the code of COMMIT, by default the last commit, and with this code. The arrays of
`latest.dat` and the columns of `metrics.csv` must be equal, except the columns that measure time. `FORMER_COLUMNS` maps
renamed columns. The runs use flags that both versions know.
"""

import csv
import subprocess
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file

from hebbes.registry.former_names import FORMER_COLUMNS
from tests.python_process import ROOT, run_python

pytestmark = pytest.mark.slow


SMALL = "--generations 3 --eval_episodes 2 --test_episodes 0 --threads 1 --max_episode_steps 60 --run_name run"
POPULATION = "--popsize 8"


@dataclass(frozen=True)
class Run:
    """A run: its script and its flags. Of a resumed one the earlier code plays the first two generations."""

    flags: str
    script: str = "train_static.py"
    resumed: bool = False


CARTPOLE = f"--environment CartPole-v1 --policy linear {POPULATION}"
CHEETAH = f"--environment HalfCheetah-v5 --preset none {POPULATION}"
TMAZE = f"--environment TMaze-v0 {POPULATION} --hidden_sizes 8"
IN_POPULATIONS = ("openai_es", "ars", "cem", "cma_es", "cr_fm_nes", "ga", "pgpe", "sep_cma_es", "snes", "xnes")
RUNS = {
    **{name: Run(f"{CARTPOLE} --strategy {name}") for name in IN_POPULATIONS},
    "one_plus_one": Run("--environment CartPole-v1 --policy linear --strategy one_plus_one"),
    "envpool": Run(f"{CHEETAH} --observation_normalization"),
    "gymnasium": Run(f"{CHEETAH} --backend gymnasium --observation_normalization"),
    "workers": Run(f"{CARTPOLE} --backend gymnasium --engine workers"),
    "low_rank": Run(f"{CHEETAH} --sampler low_rank"),
    "orthogonal": Run(f"{CHEETAH} --sampler orthogonal"),
    "lstm": Run(f"{CARTPOLE.replace('linear', 'lstm')} --recurrent_size 8"),
    "gru": Run(f"{CARTPOLE.replace('linear', 'gru')} --recurrent_size 8"),
    "cnn": Run(f"--environment CarRacing-v3 {POPULATION} --policy cnn"),
    "virtual_batch": Run(
        f"--environment Pong --policy conv_lstm --atari_42 --virtual_batch 4 {POPULATION} --chunk_size 4"
    ),
    "bodies": Run(f"--environment Ant-v5 --preset none --bodies none right {POPULATION}"),
    "num_interactions": Run(f"{CARTPOLE} --num_interactions 400"),
    "adam": Run(f"{CHEETAH} --optimizer adam --episode_seeds independent"),
    "z_score": Run(f"{CHEETAH} --fitness_shaping z_score --reward_shift -1"),
    "bullet": Run(f"--environment AntBulletEnv-v0 {POPULATION}"),
    "resumed": Run(f"{CHEETAH} --observation_normalization --optimizer adam", resumed=True),
    "hebbian": Run(f"--environment CartPole-v1 {POPULATION}", "train_hebbian.py"),
    "hebbian_cnn": Run(f"--environment CarRacing-v3 {POPULATION} --hidden_sizes 8", "train_hebbian.py"),
    "hebbian_modulated": Run(f"{TMAZE} --modulation reward --eligibility", "train_hebbian.py"),
    "hebbian_normalized": Run(f"{TMAZE} --normalisation max_abs --hebb_rule ABCD", "train_hebbian.py"),
    "hebbian_resumed": Run(f"{TMAZE} --sharing neuron --strategy pgpe", "train_hebbian.py", resumed=True),
}


@pytest.fixture(scope="session")
def earlier(request, tmp_path_factory):
    """A folder with the files of the earlier commit."""
    commit = request.config.getoption("--earlier")
    if not subprocess.run(["git", "-C", ROOT, "diff", "--quiet", commit, "--", "hebbes"], check=False).returncode:
        pytest.fail(f"hebbes does not differ from commit {commit}: give --earlier another one")
    tree = tmp_path_factory.mktemp("earlier")
    archive = subprocess.run(["git", "-C", ROOT, "archive", commit], check=True, capture_output=True).stdout
    subprocess.run(["tar", "-x", "-C", tree], input=archive, check=True)
    return tree


@pytest.mark.parametrize("name", RUNS)
def test_both_versions_leave_the_same_numbers(name, earlier, tmp_path):
    old = play(RUNS[name], earlier, earlier, tmp_path / "old")
    new = play(RUNS[name], earlier, ROOT, tmp_path / "new")
    assert [*compare_arrays(old / "latest.dat", new / "latest.dat"), *compare_metrics(old, new)] == []


def play(run: Run, earlier: Path, tree: Path, folder: Path) -> Path:
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
    run_python(script, *arguments, cwd=tree, timeout=3000)


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
