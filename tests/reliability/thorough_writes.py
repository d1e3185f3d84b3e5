"""A run that is killed before any of its file operations, and again when resumed, ends with the same bits."""

import json
import subprocess
import sys

from training_process import ROOT


def test_kills_at_every_operation_on_a_file(tmp_path, tell):
    command = [sys.executable, "-m", "tests.reliability.killed_writes", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    tell(
        f"Scripted-v0: {found['kills']} kills at {found['operations']} operations on files and in the resumes, "
        f"{'NOT EQUAL' if found['wrong'] else 'EQUAL'}",
        kills=found["kills"],
    )
    assert found["wrong"] == [], done.stderr
    assert found["operations"] > 30
