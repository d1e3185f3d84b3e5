"""The lifecycle of a run: advances its trainer unit by unit, and records, evaluates and saves, whatever is trained."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from math import inf, isfinite, nan
from pathlib import Path
from typing import TypeAlias

from hebbes.contracts.notices import Notice, Notices, make_failure_notices
from hebbes.contracts.randomness import Purpose
from hebbes.contracts.trainer import AllFailedError, Counter, SegmentSizeError, UnitResult
from hebbes.environments.episode_limits import advise_episode_limit
from hebbes.evaluation.play import play_on
from hebbes.execution.parents_signals import delay_signals
from hebbes.execution.provenance import find_conditions
from hebbes.recording.console import Console
from hebbes.recording.loggers import Loggers
from hebbes.recording.metrics import METRICS_CSV, MetricsWriter
from hebbes.recording.progress_table import ProgressTable
from hebbes.training.advice import DivergedError, TrainingError, advise_new_run, explain_failure
from hebbes.training.background_films import BackgroundFilms
from hebbes.training.contract_checks import call_part, check_unit_result
from hebbes.training.generation_metrics import join_metrics
from hebbes.training.run_folder import RunFiles
from hebbes.training.run_state import Run, capture_checkpoint, make_snapshot

SECONDS_UNSAVED = 300
"""Of training after which a checkpoint is due, whatever `--checkpoint_every` says. A generation may take an hour."""

OnRow: TypeAlias = Callable[[Mapping[str, float]], object]
"""Called with each unit's row of metrics. If what it returns is true, training ends."""


class Lifecycle:
    """Brings one run from where it stands to its end. Whatever stops it, its last finished unit is saved.

    A unit that is interrupted is dropped. The state after the unit before it is a copy, except for segments, which
    never change.
    """

    def __init__(self, run: Run, loggers: Loggers, films: BackgroundFilms, console: Console):
        self._loggers, self._films, self._console = loggers, films, console
        self._run, self._trainer, self._options = run, run.trainer, run.config.training
        self._previous = self._progress = run.progress
        self._resumed_at = time.perf_counter() - run.progress.seconds
        self._conditions = run.conditions
        self._files = RunFiles(run)
        self._tried_to_save_at = time.perf_counter()
        self._notices, self._evaluation_notices, self._save_notices = Notices(), Notices(), Notices()
        self._is_stopped = False
        self._capture()

    def train(self, on_row: OnRow | None = None) -> None:
        """Trains until there is a reason to end, see `ending`.

        TrainingError if training cannot go on or its end cannot be saved.
        """
        unit, units = self._trainer.unit, self._progress.units
        budgets = {unit: self._trainer.num_units, "env_steps": self._options.max_env_steps}
        with (
            ProgressTable(self._console, budgets) as self._table,
            MetricsWriter(self._run.folder / METRICS_CSV) as self._metrics,
        ):
            self._introduce()
            try:
                self._evaluate_if_over()  # a budget may have been reduced before the first evaluation
                self._save()
                while not self.ending:
                    started = time.perf_counter()
                    result = self._advance()
                    self._finish_unit(result, time.perf_counter() - started, on_row)
                self._evaluate_if_over()
            except BaseException as error:
                self._save_end(error)
                raise
            self._save_end(None)
        if self._progress.units > units:
            self._console.print_message(f"training ended: {self.ending}")

    @property
    def ending(self) -> str:
        """Why training is over: a return, a budget or the caller. Empty while it goes on."""
        if self._is_stopped:
            return "the caller stopped it"
        goal, best = self._options.stop_at_return, self._progress.best
        if goal is not None and best is not None and best.score >= goal:
            return f"the best score, {best.score:.6g}, has reached stop_at_return {goal:.6g}"
        env_steps, most = self._progress.env_steps, self._options.max_env_steps
        if most is not None and env_steps >= most:
            return f"{env_steps:,} of {most:,} env steps are done"
        units, most = self._progress.units, self._trainer.num_units
        if most is not None and units >= most:
            return f"{self._trainer.unit} {units:,} of {most:,} is done"
        return ""

    def _introduce(self) -> None:
        """Prints what is trained, on what, and what the user should know about it."""
        run, environment, say = self._run, self._run.config.environment, self._console.print_message
        num_params = run.task.agent.policy.layout.num_params
        say(f"{environment.id} on {run.task.environment.backend}, {num_params:,} parameters")
        limit = advise_episode_limit(run.task.environment, self._options.max_episode_steps)
        for notice in filter(None, (run.needs, limit)):
            self._console.print_notice(notice)
        budgets = self._trainer.num_units, self._options.max_env_steps, self._options.stop_at_return
        if budgets == (None, None, None):
            self._console.print_notice("nothing ends this run but you: it has no limit and no stop_at_return")
        if self._progress.units:
            say(f"resumed after {self._trainer.unit} {self._progress.units}")
        if self.ending:
            say(f"nothing to do: {self.ending}")

    def _advance(self) -> UnitResult:
        """Does the next unit; TrainingError if it raises, returns no UnitResult, diverges, or if all members failed."""
        name, most = f"{self._trainer.unit} {self._progress.units + 1}", self._trainer.num_units
        phase = name if most is None else f"{name} of {most}"
        try:
            with self._console.phase(phase, self._count_done, "members"):
                advance = partial(self._trainer.advance, self._progress, self._run.engine)
                result = call_part(self._trainer, "advance", advance, check_unit_result)
                metrics = {column: float(value) for column, value in result.metrics.items()}  # loggers know no others
                return replace(result, env_steps=int(result.env_steps), metrics=metrics)
        except FloatingPointError as error:
            raise DivergedError(f"{name}: {error}", advise_new_run(self._run.config)) from error
        except AllFailedError as error:
            raise explain_failure(name, error, self._run.config) from error
        except SegmentSizeError as error:
            raise TrainingError(f"{name}: {error}") from error

    def _count_done(self) -> tuple[int, int]:
        return self._run.engine.progress

    def _finish_unit(self, result: UnitResult, seconds: float, on_row: OnRow | None) -> None:
        """Counts, evaluates, records, copies and saves after a unit that took so many seconds."""
        before = self._previous = self._progress
        self._print_notices(f"{self._trainer.unit} {before.units + 1}", self._notices, result.notices)
        self._progress = replace(before, units=before.units + 1, env_steps=before.env_steps + result.env_steps)
        score = self._evaluate() if self._is_due(self._options.eval_every, self._trainer.eval_counter) else nan
        self._progress = replace(self._progress, seconds=time.perf_counter() - self._resumed_at)
        best = self._progress.best
        counts = {self._trainer.unit: self._progress.units, "env_steps": self._progress.env_steps}
        outcome = {
            "eval_return": score,
            "best_score": nan if best is None else best.score,
            "env_steps_per_second": result.env_steps / seconds,
            "seconds": self._progress.seconds,
            **self._run.engine.metrics,
        }
        row = join_metrics(counts, result.metrics, outcome, self._trainer)
        self._conditions = find_conditions()  # a resumed run has those of its checkpoint until here
        with delay_signals():  # a resume would give loggers a row again that is not in the checkpoint
            self._record(row)
            self._capture()
        self._table.show(row, is_due=self._is_due(self._run.config.run.print_every, self._trainer.eval_counter))
        self._is_stopped = on_row is not None and bool(on_row(row))
        saves_every = self._run.config.run.checkpoint_every, *self._run.config.run.keep_intervals
        is_long_ago = time.perf_counter() - self._tried_to_save_at >= SECONDS_UNSAVED
        if best is not before.best or is_long_ago or any(map(self._is_due, saves_every)):
            self._save()
        self._films.advance()

    def _record(self, row: Mapping[str, float]) -> None:
        """Gives the row to metrics.csv and the loggers."""
        try:
            with suppress(OSError):  # the writer keeps the row, and `_save` reports the error
                self._metrics.write(row)
        except ValueError as error:  # raised for the metrics of a user's own part
            raise TrainingError(f"{self._trainer}: {error}") from error
        self._loggers.write(row)

    def _capture(self) -> None:
        """Keeps a copy of the state, which is what will be saved until the next unit is finished."""
        with self._name_unit_in_errors():
            self._checkpoint = capture_checkpoint(self._run, self._progress, self._conditions)
        self._is_saved = False

    @contextmanager
    def _name_unit_in_errors(self) -> Iterator[None]:
        """Turns errors about the trainer's policy and state into a TrainingError."""
        try:
            yield
        except (ValueError, FloatingPointError) as error:
            raise TrainingError(f"{self._trainer.unit} {self._progress.units}: {error}") from error

    def _is_due(self, every: int, counter: Counter = "units") -> bool:
        """Whether something that is done every `every` counts, and at the end, is due after the last unit."""
        counted = (self._previous, self._progress)
        before, now = (each.env_steps if counter == "env_steps" else each.units for each in counted)
        return now // every > before // every or bool(self.ending)

    def _evaluate(self) -> float:
        """Mean return of the trainer's policy over fresh episodes. If it is the best score, this is the best policy."""
        units, best = self._progress.units, self._progress.best
        with self._name_unit_in_errors():
            now = make_snapshot(self._run, self._progress)
        with self._console.phase("evaluation", self._count_done):
            rollouts = play_on(
                self._run.engine,
                *(now.weights, now.buffers),
                purpose=Purpose.EVALUATION,
                episodes=self._options.eval_episodes,
                number=units,
                max_episode_steps=self._run.evaluation_cap,
            )
        failed = make_failure_notices("the evaluation", rollouts.faults)
        self._print_notices(f"{self._trainer.unit} {units}", self._evaluation_notices, failed)
        score = float(rollouts.returns.mean())
        if best is None or score > (best.score if isfinite(best.score) else -inf):
            self._progress = replace(self._progress, best=replace(now, score=score))
        return score

    def _print_notices(self, when: str, notices: Notices, now: Sequence[Notice]) -> None:
        for line in notices.select(now):
            self._console.print_notice(f"{when}: {line}")

    def _evaluate_if_over(self) -> None:
        """Evaluates the policy if training is over and no evaluation has been made."""
        if self.ending and self._progress.best is None:
            self._evaluate()
            self._capture()

    def _save_end(self, error: BaseException | None) -> None:
        """Writes the last finished unit, whatever has ended training.

        If that fails, TrainingError. If an error has ended training already, a line says so instead. After a signal,
        which is a SystemExit, the program ends with status 1.
        """
        reason = "" if self._is_saved else self._save()
        if not reason:
            return
        lost = f"{self._trainer.unit} {self._checkpoint.progress.units} could not be saved: {reason}"
        if error is None:
            raise TrainingError(lost)
        self._console.print_notice(f"stopped: {lost}")
        if isinstance(error, SystemExit):
            raise SystemExit(1) from error

    def _save(self) -> str:
        """Writes the last finished unit. If that fails, the previous checkpoint remains, and the next save tries again.

        Returns why it failed, or nothing. A line says so, twice for each kind of error at most. TrainingError for a
        state that no disk would hold.
        """
        name = f"{self._trainer.unit} {self._checkpoint.progress.units}"
        self._tried_to_save_at = time.perf_counter()
        try:
            with self._console.phase("writing a checkpoint"):
                self._files.save(self._checkpoint, self._metrics)
        except OSError as error:
            # the file that was to be replaced, or its folder alone: a temporary file has another name in each save
            place = error.filename2 or (error.filename and Path(error.filename).parent)
            reason = f"{error.strerror}: {place}" if place else str(error.strerror)
            notice = Notice(f"{name} not saved ({reason}); training goes on", [str(error.strerror)])
            for line in self._save_notices.select([notice]):
                self._console.print_notice(line)
            return reason
        except ValueError as error:
            raise TrainingError(f"{name} cannot be saved: {error}") from error
        self._is_saved = True
        self._save_notices.select([])
        return ""
