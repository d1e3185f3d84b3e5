"""The test of a run's best policy, which is played once and saved in the run's folder."""

import json
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float64

from hebbes.contracts.notices import make_failure_notices
from hebbes.evaluation.play import make_evaluation_spec, play
from hebbes.files.atomic_file import write_atomically
from hebbes.files.policy_file import read_policy_file
from hebbes.files.weight_file import open_regular_file
from hebbes.recording.console import Console
from hebbes.recording.standard_output import try_to_write
from hebbes.statistics.intervals import summarize
from hebbes.training.advice import TrainingError
from hebbes.training.run_state import Run
from hebbes.training.saved_runs import BEST

TEST_JSON = "test.json"
MAX_FILE_BYTES = 2**26


def run_final_test(run: Run, console: Console) -> tuple[Float64[np.ndarray, " episodes"], bool]:
    """Returns of `best.dat` on Gymnasium's own environment, which are printed too, and whether they could be saved.

    If the folder already has a test of this policy with the same number of episodes, its returns are read instead.
    A return is NaN if its episode failed. TrainingError if `best.dat` cannot be loaded.
    """
    try:
        best = read_policy_file(run.folder / BEST, run.config.trusted_modules)
    except ValueError as error:
        raise TrainingError(f"no test: {error}") from error
    path, unit, environment = run.folder / TEST_JSON, run.trainer.unit, make_evaluation_spec(best.environment)
    # what the returns depend on, in addition to the options that a resume cannot change
    facts = {unit: best.provenance[unit], "backend": environment.backend, "seed": run.config.run.seed}
    seconds = run.config.engine.episode_timeout
    facts |= {} if seconds is None else {"episode_timeout": seconds}
    returns, is_saved = _read_returns(path, facts, run.config.run.test_episodes), True
    if returns is None:
        with console.phase("final test"):
            played = play(
                best,
                environment,
                episodes=run.config.run.test_episodes,
                seed=run.config.run.seed,
                threads=run.config.engine.local_threads,
                max_episode_steps=run.evaluation_cap,
                episode_timeout=seconds,
                console=console,
            )
        for notice in make_failure_notices("the test", played.faults):
            console.print_notice(notice.line)
        returns = played.fitness
        cells = [None if np.isnan(each) else each for each in returns.tolist()]
        text = json.dumps({**facts, "returns": cells}) + "\n"
        is_saved = try_to_write(TEST_JSON, lambda: write_atomically(path, text.encode()))
    console.print_message(f"best policy     {summarize(returns)} on {facts['backend']}, of {unit} {facts[unit]}")
    return returns, is_saved


def _read_returns(path: Path, facts: dict[str, Any], episodes: int) -> Float64[np.ndarray, " episodes"] | None:
    """The returns in a file if it holds this test with this number of episodes, else None."""
    try:
        with open_regular_file(path, MAX_FILE_BYTES, "no test is that long") as file:
            found = json.load(file)
        returns = np.array(found.pop("returns"), np.float64)
        return returns if found == facts and returns.shape == (episodes,) else None
    except (OSError, ValueError, TypeError, LookupError, AttributeError, RecursionError):
        return None
