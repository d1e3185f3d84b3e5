"""Runs of a few generations on a scripted environment, for the tests of training."""

from dataclasses import replace

import numpy as np

from reporting.metrics import METRICS, read_metrics
from strategies.openai_es import OpenaiEsSettings
from training.checkpoint import newest_checkpoint
from training.config import TrainConfig
from training.preparation import prepare
from training.run import execute

SETTINGS = OpenaiEsSettings(popsize=8, lr=0.05, optimizer="adam")


def scripted_config(folder, **changes):
    """A run of nine generations in which the return is the sum of the actions and a draw made at the start."""
    config = TrainConfig(
        environment="Scripted-v0",
        imports=("tests.scripted",),
        env_kwargs={"rewards": [0.0], "truncate_at": 5, "action_weight": 1.0},
        policy="linear",
        observation_normalization=True,
        generations=9,
        threads=1,
        folder=str(folder),
        run_name="run",
        checkpoint_every=2,
        eval_every=1,
        eval_episodes=2,
        test_episodes=0,
        settings=SETTINGS,
    )
    return replace(config, **changes)


def train(config):
    """Trains; the folder of the run."""
    (run,) = prepare(config)
    execute(run)
    return run.folder


def resume(folder, **changes):
    """Goes on with the run in a folder."""
    return train(scripted_config(folder.parent.parent, resume=str(folder), **changes))


def outcome(folder):
    """All that must be equal, bit for bit, when a run was interrupted: state, policies, rows without their times."""
    checkpoint, _ = newest_checkpoint(folder / "checkpoint")
    metrics = read_metrics(folder / "metrics.csv")
    return {
        **{name: (array.dtype.str, array.tobytes()) for name, array in checkpoint.strategy.items()},
        **{name: metrics[name].tobytes() for name in METRICS if "second" not in name},
        **{name: (folder / name).read_bytes() for name in ("best.dat", "latest.dat")},
        "moments": np.concatenate([checkpoint.progress.moments.mean, checkpoint.progress.moments.squares]).tobytes(),
        "counts": (checkpoint.progress.generation, checkpoint.progress.env_steps, checkpoint.progress.moments.count),
    }
