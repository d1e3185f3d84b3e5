"""The parts in docs/extending.md can be copied into a file and used with the commands beside them."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "extending.md").read_text()
COMMANDS = [line for block in re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL) for line in block.splitlines()]
SMALL = ["--test_episodes", "0", "--threads", "1", "--run_name", "run", "--max_episode_steps", "50"]


@pytest.fixture(scope="module")
def parts(tmp_path_factory):
    """A folder with my_parts.py, which holds all the page's Python in order."""
    folder = tmp_path_factory.mktemp("parts")
    (folder / "my_parts.py").write_text("\n\n".join(re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)))
    return folder


def run(parts, *arguments):
    environment = {**os.environ, "PYTHONPATH": f"{parts}{os.pathsep}{ROOT}"}
    return subprocess.run([sys.executable, *arguments], cwd=ROOT, env=environment, capture_output=True, text=True)


def test_the_page_has_a_command_for_each_kind_of_part():
    assert [re.search(r"--(\w+) my_parts:", line)[1] for line in COMMANDS] == [
        *("policy", "strategy", "wrappers", "loggers", "algorithm")
    ]


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS)
def test_each_command_trains_and_keeps_the_options_of_the_part(command, parts, tmp_path):
    words = shlex.split(command)
    done = run(parts, *words[1:], "--folder", str(tmp_path), *SMALL)
    assert done.returncode == 0, done.stderr
    folder = tmp_path / words[words.index("--environment") + 1] / "run"
    (place,) = (number for number, word in enumerate(words) if word.startswith("my_parts:"))
    option = words[place + 1].removeprefix("--")
    assert f"\n{option}: " in (folder / "config.yaml").read_text()
    budget, so_far = words[-2:]
    again = run(parts, words[1], "--resume", str(folder), "--import", "my_parts", budget, str(int(so_far) + 1))
    assert again.returncode == 0, again.stderr
    if "JSONLines" in command:
        assert len((folder / "metrics.jsonl").read_text().splitlines()) == 2


@pytest.mark.parametrize(
    ("flags", "line"),
    [
        ("--policy my_parts:Fourier --frequency 0", "frequency must be a finite number > 0, got 0"),
        ("--strategy my_parts:RandomSearch --population_size 1", "population_size must be >= 2, got 1"),
        ("--wrappers my_parts:NoisyReward --drift much", "drift must be a number, got 'much'"),
        ("--loggers my_parts:JSONLines --every 0", "every must be >= 1, got 0"),
        ("--algorithm my_parts:ApproachRL --pull 0", "pull must be in (0, 1], got 0.0"),
        ("--algorithm my_parts:RandomSearch", "algorithm 'my_parts:RandomSearch' is not an algorithm: it must inherit"),
        ("--drift 0.1", "unknown option --drift"),
    ],
)
def test_the_options_of_a_part_are_checked(flags, line, parts):
    program, environment = ("hybrid", "Pendulum-v1") if "algorithm" in flags else ("static", "CartPole-v1")
    done = run(parts, f"train_{program}.py", "--environment", environment, *flags.split())
    assert done.returncode == 2
    assert line in done.stderr and len(done.stderr.splitlines()) == 1


def test_the_page_runs_from_python(parts, tmp_path):
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, str(parts / "my_parts.py")], cwd=tmp_path, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("[")
