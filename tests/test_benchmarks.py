"""The benchmarks run and print their figures; what the figures are is not a test's business."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
NOISES, UNITS = ("full_rank", "low_rank"), ("second", "cpu_second")


@pytest.mark.parametrize(
    ("command", "keys"),
    [
        (
            ["throughput.py", "--environment", "CartPole-v1", "--popsize", "4", "--max_episode_steps", "20"],
            {"environment", "threads", "env_steps_per_second", "bare_env_steps_per_second", "ratio"},
        ),
        (
            ["low_rank.py", "--popsize", "4", "--hidden_sizes", "4", "--max_episode_steps", "20"],
            {
                f"{policy}_{figure}"
                for policy in ("untrained", "trained")
                for figure in (
                    "episode_length",
                    *(f"{noise}_env_steps_per_{unit}" for noise in NOISES for unit in UNITS),
                    *(f"env_steps_per_{unit}_ratio" for unit in UNITS),
                )
            },
        ),
        (["sampling.py", "--members", "4", "--params", "100"], {"seconds", "megabytes_above_population"}),
    ],
)
def test_prints_its_figures_as_json(command, keys):
    arguments = [sys.executable, str(ROOT / "benchmarks" / command[0]), *command[1:], "--json"]
    done = subprocess.run(arguments, capture_output=True, text=True, timeout=120, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    figures = json.loads(done.stdout)
    assert set(figures) == keys
    assert all(value > 0 for value in figures.values() if not isinstance(value, str))
