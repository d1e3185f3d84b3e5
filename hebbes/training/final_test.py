"""The test of a run's best policy: played once, and kept in the folder of the run."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float64

from hebbes.evaluation.play import environment_for, play
from hebbes.files.atomic_file import write_atomically
from hebbes.files.policy_file import SavedPolicy, load_policy
from hebbes.files.weight_file import opened
from hebbes.recording.standard_output import say, try_to_write
from hebbes.statistics.intervals import summarize
from hebbes.training.generation_loop import Run, TrainingError, evaluation_cap

TEST_JSON = "test.json"
MAX_FILE_BYTES = 2**26


@dataclass(frozen=True)
class Tested:
    """What the test of a run came to."""

    returns: Float64[np.ndarray, " episodes"]
    """NaN for an episode that failed; none where no test was asked for."""
    is_kept: bool = True
    """Whether the folder of the run has them."""


def final_test(run: Run) -> Tested:
    """Says what `best.dat` is worth on Gymnasium's own environment; TrainingError where it cannot be loaded.

    A test of the same policy over as many episodes that the folder has already is not played again.
    """
    try:
        best = load_policy(run.folder / "best.dat", run.config.trusted_modules)
    except ValueError as error:
        raise TrainingError(f"no test: {error}") from error
    path, facts = run.folder / TEST_JSON, _facts(run, best)
    returns, is_kept = _kept(path, facts, run.config.test_episodes), True
    if returns is None:
        returns = _played(run, best)
        cells = [None if np.isnan(each) else each for each in returns.tolist()]
        text = json.dumps({**facts, "returns": cells}) + "\n"
        is_kept = try_to_write(TEST_JSON, lambda: write_atomically(path, text.encode()))
    say(f"best policy     {summarize(returns)} on {facts['backend']}, of generation {facts['generation']}")
    return Tested(returns, is_kept)


def _facts(run: Run, best: SavedPolicy) -> dict[str, Any]:
    """What the returns of a test depend on, beside the options that never change."""
    backend = environment_for(best.environment).backend
    return {"generation": best.provenance["generation"], "backend": backend, "seed": run.config.seed}


def _played(run: Run, best: SavedPolicy) -> Float64[np.ndarray, " episodes"]:
    config = run.config
    return play(
        best,
        environment_for(best.environment),
        episodes=config.test_episodes,
        seed=config.seed,
        threads=config.threads,
        max_episode_steps=evaluation_cap(config),
    )


def _kept(path: Path, facts: dict[str, Any], episodes: int) -> Float64[np.ndarray, " episodes"] | None:
    """The returns in a file, if they are of the test that these facts name and are as many as episodes; else None."""
    try:
        with opened(path, MAX_FILE_BYTES, "no test is that long") as file:
            found = json.load(file)
        returns = np.array(found.pop("returns"), np.float64)
        return returns if found == facts and returns.shape == (episodes,) else None
    except (OSError, ValueError, TypeError, LookupError, AttributeError, RecursionError):
        return None
