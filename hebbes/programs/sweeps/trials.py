"""The trials of a sweep: runs with sampled settings, pruned by the mean policy's return at its evaluations."""

import textwrap
import time
from collections.abc import Mapping
from functools import partial
from math import isfinite

import optuna

from hebbes.programs.sweeps.jobs import Job, execute_briefly, hold_lock, prepare_job
from hebbes.programs.sweeps.study import Study
from hebbes.programs.sweeps.sweep_options import set_params
from hebbes.recording.console import Console
from hebbes.statistics.table import format_number
from hebbes.training.assemble_run import assemble_run
from hebbes.training.run_state import Run


class Trials:
    """Trials as jobs, in total `most`, whatever process has run them."""

    def __init__(self, study: Study, console: Console, *, most: int):
        self._study, self._console, self._most = study, console, most
        self._config = study.config.change(run={"test_episodes": 0})
        values = study.config.values
        start = ((each.name, values[each.option.key], each.space) for each in study.searched)
        self._start = {name: value for name, value, space in start if space.contains(value)}

    @property
    def are_done(self) -> bool:
        """Whether all are completed or pruned."""
        trials = self._study.trials
        return len(trials) >= self._most and all(each.state.is_finished() for each in trials)

    def take(self) -> Job | None:
        """A trial that lost its process, or else a new one."""
        while (trial := self._study.take_trial(self._start, self._most)) is not None:
            self._study.sample(trial)
            folder = self._study.find_trial_folder(trial.number)
            try:
                config = set_params(self._config, self._study.searched, trial.params)
                if not folder.exists():
                    assemble_run(config, folder).close()
            except ValueError as error:
                self._study.prune(trial)
                self._print(trial, f"left out: {error}")
                continue
            return partial(self._run, trial, prepare_job(config, folder))
        return None

    def _run(self, trial: optuna.Trial, run: Run) -> None:
        """Trains until the budget is done or the trial is pruned, and tells the study."""
        started, pruned_at = time.perf_counter(), 0

        def report(row: Mapping[str, float]) -> bool:
            nonlocal pruned_at
            value, env_steps = row["eval_return"], int(row["env_steps"])
            if isfinite(value) and self._study.report(trial, value, env_steps):
                pruned_at = env_steps
            return pruned_at > 0

        with hold_lock(run):
            trained = execute_briefly(run, f"trial {trial.number}", self._console, report)
            if pruned_at:
                outcome = f"pruned after {pruned_at:,} env steps"
            elif trained is None:
                self._study.prune(trial)
                outcome = "diverged"
            else:
                value = float(trained.metrics["eval_return"][-1])
                self._study.complete(trial, value)
                outcome = f"return {format_number(value)}"
        self._print(trial, f"{outcome}, {time.perf_counter() - started:.0f} s")

    def _print(self, trial: optuna.Trial, outcome: str) -> None:
        spaces = {each.name: each.space for each in self._study.searched}
        settings = " ".join(f"{name}={spaces[name].round(value)}" for name, value in trial.params.items())
        lines = textwrap.wrap(f"{outcome}: {settings}", 64, break_long_words=False, break_on_hyphens=False)
        indented = textwrap.indent("\n".join(lines), 16 * " ").lstrip()
        self._console.print_message(f"trial {trial.number}".ljust(16) + indented)
