"""The finals of a sweep: runs with the settings of its best trials and of its start, on seeds of their own."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from math import inf, isfinite

import numpy as np
from jaxtyping import Float64

from hebbes.programs.sweeps.jobs import Job, execute_briefly, hold_lock, prepare_job
from hebbes.programs.sweeps.study import Study, is_busy
from hebbes.programs.sweeps.sweep_options import set_params
from hebbes.recording.console import Console
from hebbes.statistics.intervals import Summary, make_json_number
from hebbes.statistics.summary_table import summarize_runs
from hebbes.statistics.table import format_number
from hebbes.training.config import TrainConfig
from hebbes.training.run_state import Run

START = "start"
"""The name of the settings from which a sweep starts."""


@dataclass(frozen=True)
class Finalist:
    """Settings that are trained again with other seeds."""

    name: str
    """That of the folder of the runs: `START`, or that of a trial."""
    config: TrainConfig
    returns: Mapping[int, Float64[np.ndarray, " episodes"]]
    """Those of the test of each run that is done, by seed. One NaN stands for a run that diverged."""

    @cached_property
    def summary(self) -> Summary:
        """Statistics over the runs."""
        return summarize_runs(list(self.returns.values()))

    @property
    def score(self) -> float:
        """The interquartile mean over the runs; -inf if one failed."""
        score = self.summary.iqm.value
        return score if isfinite(score) else -inf


class Finals:
    """Runs with the finalists' settings as jobs, one for each seed."""

    def __init__(self, study: Study, console: Console, *, num_trials: int, num_seeds: int):
        """`num_trials` is the number of trials that are finalists."""
        self._study, self._console, self._num_trials = study, console, num_trials
        first = study.config.run.seed + 1  # the trials have the seed before it
        self._seeds = range(first, first + num_seeds)

    @property
    def finalists(self) -> list[Finalist]:
        """The start and the best trials, the best first, with the returns of the runs that are done."""
        configs = {START: self._study.config}
        for trial in self._study.best_trials:
            if len(configs) > self._num_trials:
                break
            config = set_params(self._study.config, self._study.searched, trial.params)
            if all(config.as_options() != each.as_options() for each in configs.values()):
                configs[f"final{trial.number}"] = config
        results, found = self._study.results, []
        for name, config in configs.items():
            done = {seed: results.get(f"{name} seed {seed}") for seed in self._seeds}
            returns = {seed: np.array(each, np.float64) for seed, each in done.items() if self._is_result(each)}
            found.append(Finalist(name, config, returns))
        return found

    def _is_result(self, returns: Sequence[float | None] | None) -> bool:
        """Whether these are the returns of a run that was tested as the config says, or that has diverged."""
        return returns is not None and (len(returns) == self._study.config.run.test_episodes or returns == [None])

    @property
    def are_done(self) -> bool:
        """Whether all seeds of all finalists are done."""
        return all(len(each.returns) == len(self._seeds) for each in self.finalists)

    def take(self) -> Job | None:
        """The run of a seed of a finalist that no process works on."""
        for finalist in self.finalists:
            for seed in self._seeds:
                folder = self._study.folder / finalist.name / f"seed{seed}"
                if seed not in finalist.returns and not is_busy(folder):
                    run = prepare_job(finalist.config.change(run={"seed": seed}), folder)
                    return partial(self._run, finalist.name, seed, run)
        return None

    def _run(self, name: str, seed: int, run: Run) -> None:
        with hold_lock(run):
            trained = execute_briefly(run, f"{name} seed {seed}", self._console)
            returns = [float("nan")] if trained is None else trained.returns.tolist()
            self._study.save_result(f"{name} seed {seed}", [make_json_number(each) for each in returns])
        outcome = f"return {format_number(float(np.mean(returns)))} with seed {seed}"
        self._console.print_message(name.ljust(16) + outcome)
