"""Runs of a few generations on a scripted environment, for the tests of training."""

from dataclasses import replace

import numpy as np

from hebbes.contracts.engine import Moments
from hebbes.files.checkpoint import load_newest_checkpoint
from hebbes.recording.metrics import read_metrics
from hebbes.strategies.openai_es import OpenAIESSettings
from hebbes.training.config import TrainConfig
from hebbes.training.prepare import prepare
from hebbes.training.run import execute

SETTINGS = OpenAIESSettings(population_size=8, learning_rate=0.05, optimizer="adam")


def make_scripted_config(folder, **changes):
    """Options of nine generations, whose return is the sum of the actions and of a number drawn at the start."""
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
    """Trains; returns the folder of the run."""
    (run,) = prepare(config)
    execute(run)
    return run.folder


def resume(folder, **changes):
    """Resumes the run in a folder; returns the folder."""
    return train(make_scripted_config(folder.parent.parent, resume=str(folder), **changes))


def read_outcome(folder):
    """All that must be equal, bit for bit, after an interruption: state, policies, and metrics without times."""
    checkpoint, _ = load_newest_checkpoint(folder / "checkpoint")
    metrics, progress = read_metrics(folder / "metrics.csv"), checkpoint.progress
    moments = progress.moments or Moments(0, np.empty(0), np.empty(0))
    return {
        **{name: (array.dtype.str, array.tobytes()) for name, array in checkpoint.strategy.items()},
        **{name: column.tobytes() for name, column in metrics.items() if "second" not in name},
        **{name: (folder / name).read_bytes() for name in ("best.dat", "latest.dat")},
        "moments": np.concatenate([moments.mean, moments.squares]).tobytes(),
        "counts": (progress.generation, progress.env_steps, moments.count),
    }
