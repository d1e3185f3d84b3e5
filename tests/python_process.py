"""Python programs in processes of their own."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def run_python(*arguments, status=0, cwd=ROOT, timeout=300, **options):
    """The finished process of `python ARGUMENTS`, its output as text; `options` are those of `subprocess.run`.

    Fails if it ends with another status.
    """
    command = [sys.executable, *map(str, arguments)]
    options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True} | options
    done = subprocess.run(command, cwd=cwd, timeout=timeout, **options)
    assert done.returncode == status, f"{command} ended with {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done
