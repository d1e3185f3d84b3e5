"""Small asynchronous hybrids for tests: on Pendulum-v1, with episodes of 20 env steps."""

import numpy as np

from hebbes.contracts.trainer import Progress
from hebbes.hybrids.aes_rl import AESRL
from tests.hybrids import cem_rl_trainers
from tests.hybrids.cem_rl_trainers import advance, build_trainer, make_pendulum

LENGTH = 20
SIZES = {"actor_workers": 3, "batch_size": 8, "critic_hidden_sizes": (8,), "start_steps": 50, "replay_size": 1000}


def make_task(seed=5):
    return cem_rl_trainers.make_task(make_pendulum(LENGTH), seed)


def make_trainer(kind=AESRL, task=None, **changes):
    scale = {"mean_scale": 100.0} if issubclass(kind, AESRL) else {}
    return build_trainer(kind, task or make_task(), {**SIZES, **scale, **changes})


def advance_until(is_enough, trainer, engine, progress=Progress()):  # noqa: B008  # it is frozen
    """When a job is done depends on the machine, and so does in which row its effect is seen."""
    rows, progress = advance(trainer, engine, 1, progress)
    while not is_enough(rows):
        row, progress = advance(trainer, engine, 1, progress)
        rows += row
        assert len(rows) < 1000
    return rows, progress


def find_told(rows):
    return [row for row in rows if np.isfinite(row["mean_policy_return"])]
