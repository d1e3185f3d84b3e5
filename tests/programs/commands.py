"""Commands in processes of their own."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def run_command(name, *arguments):
    """The finished process of `python -m hebbes NAME ARGUMENTS`."""
    command = [sys.executable, "-m", "hebbes", name, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, cwd=ROOT)
