"""The commands in README and docs, made short enough for a test, with what they expect to be there."""

import re
import shlex
from pathlib import Path

import numpy as np
import torch

from tests.python_process import ROOT

PAGES = [ROOT / "README.md", *sorted(ROOT.glob("docs/*.md"))]

_TRAIN = (
    "--generations 2 --population_size 8 --eval_every 1 --max_episode_steps 20 --test_episodes 1 --eval_episodes 1 "
    "--threads 1 --seeds? 2"
)
_EVALUATE = "--episodes 2 --max_episode_steps 120 --threads 1"
_TRAIN_HYBRID = (
    "--max_env_steps 60 --start_steps 20 --max_episode_steps 10 --test_episodes 1 --eval_episodes 1 --threads 1"
)
_SWEEP = (
    "--trials 2 --max_env_steps 800 --max_episode_steps 20 --eval_every 1 --finalists 1 --final_seeds 1 --threads 1"
)
RESUME = "--generations? 3 --test_episodes 1 --threads 1"
SHORT = {
    **dict.fromkeys(("train_static", "train_hebbian"), _TRAIN),
    **dict.fromkeys(("evaluate_static", "evaluate_hebbian", "compare"), _EVALUATE),
    "film": "--max_episode_steps 20",
    "report": "--episodes 2",
    "plot": "--x? env_steps",  # the times of runs so short need not overlap
    "train_hybrid": _TRAIN_HYBRID,
    "sweep": _SWEEP,
    "examples.t_maze": "--seeds 1 --generations 2 --popsize 8 --eval_episodes 8",
}
"""Program -> flags that make it quick. They replace the command's own. Those with a question mark are not added."""

_SHORT_EPISODES = "--gymnasium_wrappers 'TimeLimit: {max_episode_steps: 20}'"
"""A film of a whole one takes minutes where no GPU draws it."""

BEFORE = {
    "report": [
        f"python train_static.py --environment HalfCheetah-v5 {_SHORT_EPISODES} --run_name openai --preset openai_es",
        f"python train_static.py --environment HalfCheetah-v5 {_SHORT_EPISODES} --run_name cem --strategy cem",
    ],
    "reliability": ["python train_static.py --environment CartPole-v1 --run_name my_run"],
}
"""Page -> commands for the runs that it takes for granted."""

OTHER_MACHINES = {"cluster": "starts Ray on several hosts, or hands work to a scheduler"}
"""Page -> why its commands are not run."""


def list_commands(page: Path) -> list[str]:
    """The commands in the page's blocks of shell, without comments, with continued lines joined."""
    blocks = re.findall(r"^```sh\n(.*?)^```", page.read_text(), re.DOTALL | re.MULTILINE)
    lines = "".join(blocks).replace("\\\n", " ").splitlines()
    return [
        " ".join(line.split("  #")[0].split()) if "'" not in line else line.split("  #")[0] for line in lines if line
    ]


def split_command(command: str) -> tuple[dict[str, str], list[str]]:
    """The environment variables before a command, and its words."""
    words = shlex.split(command)
    count = next(number for number, word in enumerate(words) if not re.match(r"[A-Z_]+=", word))
    return dict(word.split("=", 1) for word in words[:count]), words[count:]


def find_program(words: list[str]) -> str:
    """What a command runs, such as "train_static", "compare" or "benchmarks.scaling"; else its first word."""
    match words:
        case ["hebbes", name, *_] | ["python", "-m", "hebbes", name, *_] | ["python", "-m", name, *_]:
            return name
        case ["python", script, *_] if script.endswith(".py"):
            return script.removesuffix(".py").replace("/", ".")
    return words[0]


def shorten(words: list[str], folder: Path) -> list[str]:
    """The command with fewer generations and episodes, and with files in the folder for its <placeholders>."""
    flags = iter((RESUME if "--resume" in words else SHORT.get(find_program(words), "")).split())
    words = [word for word in words if word != "--follow"]
    if words[0] == "hebbes":
        words = ["python", "-m", *words]
    for flag, value in zip(flags, flags, strict=True):
        name = flag.removesuffix("?")
        if name in words:
            words[words.index(name) + 1] = value
        elif name == flag:
            words += [flag, value]
    return [fill_placeholder(word, folder) for word in words]


def fill_placeholder(word: str, folder: Path) -> str:
    """A path with `<run>` and the like as the newest that there is, and `<environment>` as one."""
    word = word.replace("<environment>", "CartPole-v1")
    if "<" not in word:
        return word
    found = folder.glob(re.sub("<.*?>", "*", word))
    return str(max(found, key=lambda path: path.stat().st_mtime).relative_to(folder))


def prepare_folder(folder: Path) -> None:
    """Fills a folder with what a clone has, as links, and with the files that the pages take for granted."""
    for name in ("hebbes", "examples", "benchmarks", "tests", *(path.name for path in ROOT.glob("*.py"))):
        (folder / name).symlink_to(ROOT / name)
    (folder / "docs" / "figures").mkdir(parents=True)
    (folder / "best.dat").symlink_to(ROOT / "hebbes" / "zoo" / "HalfCheetah-v5.dat")
    package = folder / "my_package"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "wrappers.py").write_text("import gymnasium\n\n\nclass Mine(gymnasium.Wrapper):\n    pass\n")
    rng = np.random.default_rng(0)
    dense = 648 * 128 + 128 * 64 + 64 * 3
    torch.save(rng.normal(size=1362 + dense), folder / "old.dat")
    torch.save(rng.normal(size=(dense, 5)), folder / "coefficients.dat")
    torch.save(rng.normal(size=1362), folder / "kernels.dat")
