"""Execution of prepared runs: training, the learning curve, the test of the best policy."""

import os
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from jaxtyping import Float64
from threadpoolctl import threadpool_limits

from hebbes.contracts.engine import EngineError
from hebbes.environments.ids import endless
from hebbes.recording.console import Console
from hebbes.recording.metrics import METRICS_CSV, MetricsWriter
from hebbes.recording.standard_output import say, try_to_write
from hebbes.recording.tensorboard import TensorboardWriter
from hebbes.reporting.learning_curve import plot_learning_curve
from hebbes.statistics.summary_table import runs_table
from hebbes.training.advice import GO_ON
from hebbes.training.final_test import Tested, final_test
from hebbes.training.generation_loop import Run, Trainer, TrainingError
from hebbes.training.runs import Runs

LEARNING_CURVE = "learning_curve.png"


@dataclass(frozen=True)
class Finished:
    """A run that came to its end."""

    returns: Float64[np.ndarray, " episodes"]
    """Of the test of its best policy; none where no test was asked for."""
    is_whole: bool
    """Whether its folder has every file that it should."""


def execute_all(runs: Runs) -> bool:
    """Executes one run after the other and compares them; whether every file of theirs could be written.

    Of several runs one that fails does not keep the others from their turn; an error in the end says how many did.
    The last line says how to go on, if that is needed, or what else helps.
    """
    try:
        is_whole = _execute_each(runs) if runs.top is not None else execute(runs.prepare(runs.seeds.start)).is_whole
    except BaseException as error:
        advice = error.advice if isinstance(error, TrainingError) else GO_ON
        say(advice.format(resume=runs.resume_command))
        raise
    finally:
        runs.close()
    if not is_whole:
        say(GO_ON.format(resume=runs.resume_command))
    return is_whole


def _execute_each(runs: Runs) -> bool:
    """Executes the runs of several seeds."""
    returns: dict[str, Float64[np.ndarray, " episodes"]] = {}
    advice: dict[str, None] = {}
    num_stopped, reason, all_whole = 0, "", True
    for number, seed in enumerate(runs.seeds, 1):
        say(f"seed {number} of {runs.total}".ljust(16) + f"{seed}, in {runs.folder_of(seed)}")
        try:
            finished = execute(runs.prepare(seed))
        except (EngineError, TrainingError) as error:
            say(f"stopped         {runs.folder_of(seed)}: {error}")
            num_stopped, reason = num_stopped + 1, str(error).partition("\n")[0]
            advice[error.advice if isinstance(error, TrainingError) else GO_ON] = None
            continue
        all_whole &= finished.is_whole
        if len(finished.returns):
            returns[runs.folder_of(seed).name] = finished.returns
    if len(returns) > 1:
        say(runs_table(list(returns), list(returns.values())))
    if num_stopped:
        helps = GO_ON if GO_ON in advice or not all_whole else "\n".join(advice)
        raise TrainingError(f"{num_stopped} of {runs.total} seeds, the last of them by: {reason}", helps)
    return all_whole


def execute(run: Run) -> Finished:
    """Trains, draws the learning curve, tests `best.dat` and says where everything is.

    However the training is stopped, what was finished is saved. What the folder has already is neither drawn nor played
    again. TrainingError or EngineError where training cannot go on.
    """
    try:
        try:
            with threadpool_limits(limits=1, user_api="blas"):  # the last bits of a product depend on who shares in it
                has_events = _train(run)
        finally:
            run.engine.close()
            is_drawn = _draw(run.folder)
        tested = final_test(run) if run.config.test_episodes else Tested(np.empty(0))
    except OSError as error:
        raise TrainingError(f"{error.strerror or error}: {error.filename or run.folder}") from error
    finally:
        if run.lock is not None:
            os.close(run.lock)
    return Finished(tested.returns, has_events and is_drawn and tested.is_kept)


def _train(run: Run) -> bool:
    """Trains; False where only TensorBoard's events could not be written."""
    config = run.config
    with (
        Console(
            config.generations, max_env_steps=config.max_env_steps, print_every=config.print_every, stream=sys.stdout
        ) as console,
        MetricsWriter(run.folder / METRICS_CSV, run.progress.generation) as metrics,
    ):
        num_params = run.task.agent.policy.layout.num_params
        console.message(f"{config.environment} on {run.task.environment.backend}, {num_params:,} parameters")
        notices = run.needs, endless(config.environment, config.env_kwargs, config.max_episode_steps)
        for notice in filter(None, notices):
            console.message(notice)
        trainer = Trainer(run, console)
        if run.progress.generation:
            console.message(f"resumed after generation {run.progress.generation}")
        already_over = bool(trainer.ending)
        if already_over:
            console.message(f"nothing to do: {trainer.ending}")
        board = TensorboardWriter(run.folder, run.progress.generation) if config.tensorboard else None
        try:
            trainer.run(metrics, board)
        finally:
            has_events = board is None or try_to_write("TensorBoard events", board.close)
        if not already_over:
            console.message(f"training ended: {trainer.ending}")
    return has_events


def _draw(folder: Path) -> bool:
    """Draws the learning curve if it is older than its metrics, and says where everything is; False where it cannot."""
    metrics, curve = folder / METRICS_CSV, folder / LEARNING_CURVE
    if not (metrics.exists() and metrics.stat().st_size):
        return True
    is_new = curve.is_file() and curve.stat().st_mtime_ns >= metrics.stat().st_mtime_ns
    is_drawn = is_new or try_to_write("learning curve", lambda: plot_learning_curve(metrics, curve))
    for weights in sorted(folder.glob("*.dat")):
        say(f"weights         {weights}")
    say(f"log             {metrics}")
    if is_drawn:
        say(f"learning curve  {curve}")
    return is_drawn
