"""The parts in docs/extending.md can be copied into a file, or into hebbes, and used with the commands beside them."""

import os
import re
import runpy
import shlex
import shutil
import sys

import pytest
import yaml

from tests.forked_programs import run_forked
from tests.python_process import ROOT, run_python

PAGE = (ROOT / "docs" / "extending.md").read_text()
BLOCKS = re.findall(r"```(?:python|yaml)\n(.*?)```", PAGE, re.DOTALL)
PLACE = re.compile(r"# (hebbes/\S+\.(?:py|yaml))(?:, in (\w+))?\n")
"""The first line of a block that belongs into hebbes: the file, and the table in it if it is a line of one."""
COMMANDS = [line for block in re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL) for line in block.splitlines()]
WITH_MY_PARTS = [line for line in COMMANDS if "my_parts" in line]
WITHIN_HEBBES = [line for line in COMMANDS if "my_parts" not in line]
OWN = [block for block in BLOCKS if not PLACE.match(block)]
CLASS = re.compile(r"^class (\w+)", re.MULTILINE)
SMALL = ["--test_episodes", "0", "--threads", "1", "--run_name", "run", "--max_episode_steps", "50"]


@pytest.fixture(scope="module")
def parts(tmp_path_factory):
    """A folder with my_parts.py, which holds all of the page's own parts in order."""
    folder = tmp_path_factory.mktemp("parts")
    (folder / "my_parts.py").write_text("\n\n".join(OWN))
    yield folder
    sys.modules.pop("my_parts", None)


@pytest.mark.parametrize("block", filter(CLASS.search, OWN), ids=lambda block: CLASS.search(block)[1])
def test_each_part_can_be_copied_alone(block, tmp_path):
    path = tmp_path / "part.py"
    path.write_text(block)
    runpy.run_path(str(path), run_name="part")


@pytest.fixture(scope="module")
def clone(tmp_path_factory):
    """A copy of hebbes, to which the page's other parts have been added."""
    folder = tmp_path_factory.mktemp("clone")
    shutil.copytree(ROOT / "hebbes", folder / "hebbes")  # with its compiled kernels
    for script in ROOT.glob("train_*.py"):
        shutil.copy(script, folder)
    for block in BLOCKS:
        if place := PLACE.match(block):
            (file, table), text = place.groups(), block[place.end() :]
            if table:
                begin, end = re.split(rf"(?<=\n)(?={table}\b)", (folder / file).read_text())
                opening, lines = end.split("{\n", 1)
                text = f"{begin}{opening}{{\n{text}{lines}"
            (folder / file).write_text(text)
    return folder


def test_recipes_are_short():
    without_imports = (re.sub(r"^(from|import) .*\n", "", block, flags=re.MULTILINE) for block in BLOCKS)
    assert max(len(PLACE.sub("", block).strip().splitlines()) for block in without_imports) <= 37


def run(parts, *arguments):
    return run_forked(arguments, ROOT, {**os.environ, "PYTHONPATH": f"{parts}{os.pathsep}{ROOT}"})


def test_the_page_has_a_command_for_each_kind_of_part():
    assert [re.search(r"--(\w+) my_parts", line)[1] for line in WITH_MY_PARTS] == [
        *("policy", "policy", "policy", "strategy", "wrappers", "import", "loggers", "algorithm")
    ]
    assert [re.search("hebb_rule|shaping|preset|engine|trainer", line)[0] for line in WITHIN_HEBBES] == [
        *("hebb_rule", "shaping", "preset", "engine", "trainer")
    ]


@pytest.mark.slow
@pytest.mark.parametrize("command", WITH_MY_PARTS)
def test_each_command_trains_and_keeps_the_options_of_the_part(command, parts, tmp_path):
    words = shlex.split(command)
    done = run(parts, *words[1:], "--folder", str(tmp_path), *SMALL)
    assert done.returncode == 0, done.stderr
    folder = tmp_path / words[words.index("--environment") + 1] / "run"
    (place,) = (number for number, word in enumerate(words) if word.startswith("my_parts"))
    kept = yaml.safe_load((folder / "config.yaml").read_text())
    option = "env_kwargs" if words[place - 1] == "--import" else words[place + 1].removeprefix("--")
    (name,) = (each for each in kept if each.rpartition(".")[2] == option)  # that of a logger has its class in front
    assert kept[name] == yaml.safe_load(words[words.index(f"--{option}") + 1])
    budget, so_far = words[-2:]
    again = run(parts, words[1], "--resume", str(folder), "--import", "my_parts", budget, str(int(so_far) + 1))
    assert again.returncode == 0, again.stderr
    if "JSONLines" in command:
        assert len((folder / "metrics.jsonl").read_text().splitlines()) == 2


@pytest.mark.slow
@pytest.mark.parametrize("command", WITHIN_HEBBES)
def test_each_command_within_hebbes_trains(command, clone):
    environment = {**os.environ, "PYTHONPATH": str(clone)}
    done = run_python(*shlex.split(command)[1:], cwd=clone, env=environment)
    assert "best policy" in done.stdout


@pytest.mark.parametrize(
    ("flags", "line"),
    [
        ("--policy my_parts:Fourier --frequency 0", "frequency must be a finite number > 0, got 0"),
        ("--strategy my_parts:RandomSearch --population_size 1", "population_size must be >= 2, got 1"),
        ("--wrappers my_parts:NoisyReward --reward_noise -1", "reward_noise must be a finite number >= 0, got -1"),
        ("--loggers my_parts:JSONLines --every 0", "every must be >= 1, got 0"),
        ("--algorithm my_parts:ApproachRL --pull 0", "pull must be in (0, 1], got 0.0"),
        ("--algorithm my_parts:RandomSearch", "algorithm 'my_parts:RandomSearch' is not an algorithm: it must inherit"),
        ("--reward_noise 0.1", "unknown option --reward_noise"),
    ],
)
def test_the_options_of_a_part_are_checked(flags, line, parts, monkeypatch, refusal):
    monkeypatch.syspath_prepend(parts)
    program, environment = ("hybrid", "Pendulum-v1") if "algorithm" in flags else ("static", "CartPole-v1")
    assert line in refusal(f"train_{program}.py", "--environment", environment, *flags.split())


@pytest.mark.slow
def test_the_page_runs_from_python(parts, tmp_path):
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = run_python(parts / "my_parts.py", cwd=tmp_path, env=environment)
    assert done.stdout.startswith("[")
