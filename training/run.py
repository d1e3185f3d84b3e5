"""Execution of prepared runs: training, the learning curve, the test of the best policy."""

import os
import sys
from collections.abc import Sequence
from contextlib import closing, nullcontext
from pathlib import Path

import numpy as np
from jaxtyping import Float64
from threadpoolctl import threadpool_limits

from contracts.engine import EngineError
from reporting.console import Console, say
from reporting.metrics import METRICS_CSV, MetricsWriter
from reporting.plot import plot_learning_curve
from reporting.tensorboard import TensorboardWriter
from rollouts.environment_ids import endless
from training.evaluation import environment_for, play, summarise
from training.loop import Run, Trainer, TrainingError, evaluation_cap
from training.policy_file import load_policy
from training.run_folder import resume_command
from training.summary_table import runs_table


def execute_all(runs: Sequence[Run]) -> None:
    """Executes one run after the other and compares them; if one is stopped, a line says how to go on.

    Of several runs one that fails does not keep the others from their turn; its error is raised in the end.
    """
    top = runs[0].folder if len(runs) == 1 else runs[0].folder.parent
    go_on = f"to go on        {resume_command(top, runs[0].config.trusted_modules)}"
    returns: dict[str, Float64[np.ndarray, " episodes"]] = {}
    failure: Exception | None = None
    try:
        for run in runs:
            try:
                returns[run.folder.name] = execute(run)
            except (EngineError, TrainingError) as error:
                if len(runs) > 1:  # the error of a single run is the caller's to tell
                    say(f"stopped         {run.folder}: {error}")
                failure = error
        if failure is not None:
            raise failure
    except BaseException:
        say(go_on)
        raise
    if len(runs) > 1 and runs[0].config.test_episodes:
        say(runs_table(list(returns), list(returns.values())))


def execute(run: Run) -> Float64[np.ndarray, " episodes"]:
    """Trains, draws the learning curve, tests `best.dat` and says where everything is; the test's returns.

    However the training is stopped, what was finished is saved.
    """
    try:
        with threadpool_limits(limits=1, user_api="blas"):  # the last bits of a product depend on who shares in it
            _train(run)
    finally:
        run.engine.close()
        if run.lock is not None:
            os.close(run.lock)
        _draw(run.folder)
    return _test_best(run) if run.config.test_episodes else np.empty(0)


def _train(run: Run) -> None:
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
        writer = TensorboardWriter(run.folder, run.progress.generation) if config.tensorboard else None
        with nullcontext() if writer is None else closing(writer) as board:
            trainer.run(metrics, board)
        if not already_over:
            console.message(f"training ended: {trainer.ending}")


def _draw(folder: Path) -> None:
    """Draws the learning curve if a generation was finished, and says where everything is."""
    metrics, curve = folder / METRICS_CSV, folder / "learning_curve.png"
    if not (metrics.exists() and metrics.stat().st_size):
        return
    try:
        plot_learning_curve(metrics, curve)
    except (OSError, ValueError, KeyError) as error:
        print(f"no learning curve: {error}", file=sys.stderr)
    for weights in sorted(folder.glob("*.dat")):
        say(f"weights         {weights}")
    say(f"log             {metrics}")
    say(f"learning curve  {curve}")


def _test_best(run: Run) -> Float64[np.ndarray, " episodes"]:
    """Plays `best.dat` on Gymnasium's own environment."""
    config = run.config
    saved = load_policy(run.folder / "best.dat", config.trusted_modules)
    environment = environment_for(saved.environment)
    returns = play(
        saved,
        environment,
        episodes=config.test_episodes,
        seed=config.seed,
        threads=config.threads,
        max_episode_steps=evaluation_cap(config),
    )
    generation = saved.provenance["generation"]
    say(f"best policy     {summarise(returns)} on {environment.backend}, of generation {generation}")
    return returns
