"""A link that leads back to itself is refused in one line by all programs that read policies or runs."""

import os

import pytest

from tests.forked_programs import run_forked
from tests.python_process import ROOT


@pytest.mark.parametrize(
    "command",
    [
        ["evaluate_static.py", "--path_weights"],
        *(["-m", "hebbes", name] for name in ("compare", "film", "plot", "report", "runs")),
    ],
    ids=lambda command: command[-1],
)
def test_a_link_to_itself_is_refused(command, tmp_path):
    (tmp_path / "loop").symlink_to("loop")
    done = run_forked([*command, str(tmp_path / "loop")], ROOT, os.environ)
    (line,) = done.stderr.splitlines()
    assert done.returncode == 2 and "error: " in line and "loop" in line
