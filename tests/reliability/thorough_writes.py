"""A run that is killed before any of its file operations, and again when resumed, ends with the same bits."""

import json
import subprocess
import sys

import pytest
from training_process import ROOT


@pytest.mark.parametrize(("trainer", "every"), [("static", 1), ("replay", 4)])
def test_kills_at_every_operation_on_a_file(trainer, every, tmp_path, tell):
    command = [sys.executable, "-m", "tests.reliability.killed_writes", trainer, str(tmp_path), str(every)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    tell(
        f"Scripted-v0, {trainer}: {found['kills']} kills at {found['operations']} operations on files "
        f"and in the resumes, {'NOT EQUAL' if found['wrong'] else 'EQUAL'}",
        kills=found["kills"],
    )
    assert found["wrong"] == [], done.stderr
    assert found["operations"] > 30
