"""Executes prepared runs: training, the learning curve, the test of the best policy."""

import os
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from jaxtyping import Float64
from threadpoolctl import threadpool_limits

from hebbes.contracts.engine import EngineError
from hebbes.environments.episode_limits import describe_episode_cap
from hebbes.recording.console import Console
from hebbes.recording.loggers import Loggers
from hebbes.recording.metrics import METRICS_CSV, read_metrics
from hebbes.recording.standard_output import make_printable, try_to_write
from hebbes.reporting.learning_curve import plot_learning_curve
from hebbes.statistics.summary_table import format_runs_table
from hebbes.training.advice import METRICS_ADVICE, RESUME_ADVICE, TrainingError, find_advice
from hebbes.training.background_films import BackgroundFilms
from hebbes.training.final_test import run_final_test
from hebbes.training.lifecycle import Lifecycle, OnRow
from hebbes.training.run_state import Run
from hebbes.training.runs import Runs
from hebbes.training.saved_runs import BEST, LATEST

LEARNING_CURVE = "learning_curve.png"


@dataclass(frozen=True)
class TrainedRun:
    """A run that has ended normally.

    Examples:
        >>> import hebbes
        >>> run = hebbes.train({"environment": "CartPole-v1", "generations": 2, "threads": 1}, quiet=True)
        >>> run.folder.parent.name, run.best.name
        ('CartPole-v1', 'best.dat')
        >>> run.metrics["generation"]
        array([1., 2.])
    """

    folder: Path
    """The run's folder, as an absolute path."""
    returns: Float64[np.ndarray, " episodes"]
    """Returns of the test of the best policy; empty with `test_episodes` 0."""
    advice: str
    """What helps if a file is missing or a logger has lost rows; empty otherwise. `{resume}` stands for a command."""

    @property
    def is_complete(self) -> bool:
        """Whether every file could be written, and no logger has lost rows."""
        return not self.advice

    @property
    def best(self) -> Path:
        """The policy file of the best evaluation, for `hebbes.load_policy` and `hebbes.evaluate`."""
        return self.folder / BEST

    @property
    def latest(self) -> Path:
        """The policy file of the last generation."""
        return self.folder / LATEST

    @property
    def metrics(self) -> dict[str, Float64[np.ndarray, " generations"]]:
        """The columns of metrics.csv, read now."""
        return read_metrics(self.folder / METRICS_CSV)


def execute_all(runs: Runs, console: Console | None = None) -> bool:
    """Executes the runs one after the other and compares them; returns whether all are complete.

    If one of several runs fails, the others are still executed, and an error at the end says how many failed.
    If a resume is needed, the last line of the output is its command, or says what helps instead.
    """
    console = console or Console()
    try:
        if runs.top:
            advice = _execute_each(runs, console)
        else:
            advice = execute(runs.prepare(runs.seeds.start), console=console).advice
    except BaseException as error:
        advice = find_advice(error)
        console.print_notice(advice.format(resume=runs.resume_command))
        raise
    finally:
        runs.close()
    if advice:
        console.print_notice(advice.format(resume=runs.resume_command))
    return not advice


def _execute_each(runs: Runs, console: Console) -> str:
    """Executes the runs of several seeds; returns what helps, as `TrainedRun.advice`."""
    returns: dict[str, Float64[np.ndarray, " episodes"]] = {}
    advice: dict[str, None] = {}
    num_stopped, reason = 0, ""
    for number, seed in enumerate(runs.seeds, 1):
        place = f"seed {number} of {len(runs.seeds)}"
        console.print_message(f"{place.ljust(16)}{seed}, in {runs.find_folder(seed)}")
        try:
            with console.phase(place):
                result = execute(runs.prepare(seed), console=console)
        except (EngineError, TrainingError) as error:
            console.print_notice(f"stopped         {runs.find_folder(seed)}: {error}")
            num_stopped, reason = num_stopped + 1, str(error).partition("\n")[0]
            advice[find_advice(error)] = None
            continue
        if result.advice:
            advice[result.advice] = None
        if len(result.returns):
            returns[runs.find_folder(seed).name] = result.returns
    if len(returns) > 1:
        console.print_message(format_runs_table(list(returns), list(returns.values())))
    helps = RESUME_ADVICE if RESUME_ADVICE in advice else "\n".join(advice)
    if num_stopped:
        raise TrainingError(f"{num_stopped} of {len(runs.seeds)} seeds; the last error: {reason}", helps)
    return helps


def execute(run: Run, on_row: OnRow | None = None, console: Console | None = None) -> TrainedRun:
    """Trains, draws the learning curve, tests `best.dat` and prints where everything is; returns the outcome.

    Without a console it prints plain lines on standard output.

    However training is stopped, the finished units are saved. A curve or a test that the folder has already is
    not made again. TrainingError or EngineError if training cannot go on.
    """
    console, shown = console or Console(), run.folder
    run = replace(run, folder=shown.absolute())  # code of users may change the working folder
    try:
        with console.phase(run.config.environment.id):
            with ExitStack() as parts:
                parts.enter_context(closing(run))
                with console.phase("starting loggers"):
                    loggers = Loggers(run.config.list_loggers(), run.folder, run.progress.units, console.print_notice)
                parts.enter_context(closing(loggers))
                films = parts.enter_context(closing(BackgroundFilms(run, console)))
                try:
                    with threadpool_limits(limits=1, user_api="blas"):  # more threads change the last bits of a product
                        Lifecycle(run, loggers, films, console).train(on_row)
                finally:
                    is_drawn = _draw_learning_curve(run, console, shown)
                films.finish()
                with console.phase("closing loggers"):
                    loggers.close()
            returns, is_saved = run_final_test(run, console) if run.config.run.test_episodes else (np.empty(0), True)
    except OSError as error:
        raise TrainingError(f"{error.strerror or error}: {error.filename2 or error.filename or run.folder}") from error
    finally:
        if run.lock is not None:
            os.close(run.lock)
    for loss in loggers.losses:
        console.print_notice(f"lost            {loss}")
    is_written = is_drawn and is_saved and not films.has_failed
    advice = METRICS_ADVICE * bool(loggers.losses) if is_written else RESUME_ADVICE
    return TrainedRun(run.folder, returns, advice)


def _draw_learning_curve(run: Run, console: Console, shown: Path) -> bool:
    """Draws the learning curve if it is older than the metrics, and prints where everything is; False if it cannot.

    `shown` is the folder as the user knows it.
    """
    folder, metrics, curve = run.folder, run.folder / METRICS_CSV, run.folder / LEARNING_CURVE
    try:
        run.check_folder()
    except OSError:
        return False
    if not (metrics.exists() and metrics.stat().st_size):
        return True
    drawn_from = metrics.stat().st_mtime_ns
    title = f"{run.config.environment.id}: {make_printable('/'.join(folder.parts[-2:]))}"
    note = describe_episode_cap(run.task.environment, run.config.training.max_episode_steps)

    def draw() -> None:
        plot_learning_curve(folder, curve, title, note)
        os.utime(curve, ns=(drawn_from, drawn_from))  # when it was drawn says nothing if a clock was changed

    is_new = curve.is_file() and curve.stat().st_mtime_ns == drawn_from
    with console.phase("drawing the learning curve"):
        is_drawn = is_new or try_to_write("learning curve", draw)
    for weights in sorted(folder.glob("*.dat")):
        console.print_message(f"weights         {shown / weights.name}")
    console.print_message(f"log             {shown / metrics.name}")
    if is_drawn:
        console.print_message(f"learning curve  {shown / curve.name}")
    return is_drawn
