"""Programs show help and refuse bad options before they import a simulator, a compiler or other large modules.

Bad options may import Gymnasium, and packages of the user, because the preset of their environment is read first.
"""

import pytest

from hebbes.registry.lookup import list_names
from tests.python_process import run_python

LARGE = (
    *("numba", "llvmlite", "torch", "scipy", "cmaes", "crfmnes", "gymnasium", "envpool", "mujoco", "cv2"),
    *("safetensors", "tensorboardX", "matplotlib"),
)
LIGHT = ("policies.action_heads", "policies.coefficients", "recording.console", "recording.standard_output")
"""Modules that reading the options need not import, and that are as light."""
CODE = f"""
import sys
from hebbes.programs.train import train
commands = [command.split() for command in sys.stdin.read().splitlines()]
for trainer, *arguments in commands:
    sys.argv = ["train.py", *arguments]
    try:
        train(trainer, "Trains a policy.")
    except SystemExit as ended:
        found = [name for name in {LARGE} if name in sys.modules]
        print("\\n>", ended.code, ",".join(found), trainer, *arguments, flush=True)
"""
"""Calls the program with each line of the standard input, and prints its status and the large modules it imported."""

HELP = ["static --help", "static --help_all", "hebbian --help", "hebbian --help_all"]
HELP += [f"static --help --strategy {name}" for name in list_names("strategy")]
HELP += [f"static --help --policy {name}" for name in list_names("policy")]
MISTAKES = [
    *("static --sigma -1", "static --sgima 1", "static --strategy nope", "static --policy nope", "static --sigma"),
    *("static --momentum x", "static --threads 0", "static --environment CartPole-v1 --seed -1", "static stray"),
    *("static --preset damage --wrappers {", "static --loggers {", "static --config /no/such/file.yaml"),
    *("hebbian --hebb_rule nope", "hebbian --update_every 0", "hebbian --sgima 1", "static --env_kwargs 3"),
    *("static --strategy snes --policy lstm --momentum 0.9", "static --policy lstm --strategy snes --virtual_batch 3"),
]
MISTAKES += [f"static --strategy {name} --sigma -1" for name in list_names("strategy")]
MISTAKES += [f"static --policy {name} --sgima 1" for name in list_names("policy")]


@pytest.mark.parametrize(("commands", "status"), [(HELP, "0"), (MISTAKES, "2")], ids=["help", "mistakes"])
def test_nothing_large_is_imported(commands, status):
    done = run_python("-c", CODE, input="\n".join(commands))
    found = [line.removeprefix("> ") for line in done.stdout.splitlines() if line.startswith("> ")]
    allowed = "gymnasium" * (status == "2")
    found = [line.replace(f" {allowed} ", "  ") for line in found]
    assert found == [f"{status}  {command}" for command in commands], done.stderr[-2000:]
    if status == "2":
        assert len(done.stderr.splitlines()) == len(commands)  # one line each


def test_declaring_options_needs_nothing_large():
    code = "import sys; from hebbes.training.owners import list_all_owners; list_all_owners('static')"
    code += f"; import {', '.join(f'hebbes.{name}' for name in LIGHT)}"
    code += f"; print([name for name in {LARGE} if name in sys.modules])"
    done = run_python("-c", code)
    assert done.stdout == "[]\n", done.stderr
