"""The generation loop: ask, evaluate, tell, record, save."""

import time
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from math import ceil, inf, isfinite, nan
from typing import TypeAlias, cast

import numpy as np
from jaxtyping import Float64

from hebbes.contracts.engine import Context, Rollouts
from hebbes.contracts.policy import Buffers
from hebbes.contracts.population import NoisePopulation, Population
from hebbes.contracts.randomness import Purpose
from hebbes.contracts.strategy import Results
from hebbes.environments.ids import has_time_limit
from hebbes.execution.chunks import join_rollouts
from hebbes.execution.observation_moments import merge_moments
from hebbes.execution.repeated_population import RepeatedPopulation
from hebbes.files.checkpoint import Checkpoint
from hebbes.recording.console import Console
from hebbes.recording.loggers import Loggers
from hebbes.recording.metrics import MetricsWriter
from hebbes.training.advice import RESUME_ADVICE, TrainingError, advise_environment_fix, advise_new_run
from hebbes.training.config import TrainConfig
from hebbes.training.contract_checks import ask_population, tell_results
from hebbes.training.evolution_options import LARGEST_GROWTH
from hebbes.training.generation_metrics import compute_return_metrics, compute_tally_metrics
from hebbes.training.provenance import find_conditions
from hebbes.training.run_folder import RunFiles
from hebbes.training.run_state import Run, capture_checkpoint, make_buffers, make_snapshot

OnGeneration: TypeAlias = Callable[[Mapping[str, float]], object]
"""Called with a generation's row of metrics. If what it returns is true, training ends."""


class Trainer:
    """Runs the generations of one run and keeps its files up to date."""

    def __init__(self, run: Run, console: Console):
        self._run, self._config, self._progress = run, run.config, run.progress
        self._strategy, self._engine = run.strategy, run.engine
        self._console = console
        self._resumed_at = time.perf_counter() - run.progress.seconds
        self._conditions = find_conditions()
        self._files = RunFiles(run.folder, run.task, run.config)
        self._checkpoint = capture_checkpoint(run, self._conditions)
        self._saved: Checkpoint | None = None
        self._last_problem = self._save_error = ""
        self._is_stopped = False

    def run(self, metrics: MetricsWriter, loggers: Loggers, on_generation: OnGeneration | None = None) -> None:
        """Trains until there is a reason to end, see `ending`.

        `on_generation` is called with each row of metrics, and training ends after a generation for which it returns
        something true.
        The last finished generation is always saved, however training ends. TrainingError if that fails.
        """
        try:
            self._evaluate_if_over()  # a budget may have been reduced before the first evaluation
            self._save(metrics)
            while not self.ending:
                best = self._progress.best
                try:
                    row = self.run_generation()
                except FloatingPointError as error:
                    where = f"generation {self._progress.generation + 1}"
                    raise TrainingError(f"{where}: {error}", advise_new_run(self._config.settings)) from error
                try:
                    with suppress(OSError):  # the writer keeps the row, and `_save` reports the error
                        metrics.write(row)
                except ValueError as error:  # raised for the metrics of a user's strategy
                    raise TrainingError(f"strategy {self._config.evolution.strategy!r}: {error}") from error
                loggers.write(row)
                self._checkpoint = capture_checkpoint(replace(self._run, progress=self._progress), self._conditions)
                self._console.show_generation(row)
                self._is_stopped = on_generation is not None and bool(on_generation(row))
                if self._progress.best is not best or self._is_due(self._config.run.checkpoint_every):
                    self._save(metrics)
            self._evaluate_if_over()
        finally:
            if self._saved is not self._checkpoint:
                self._save(metrics)
        if self._saved is not self._checkpoint:
            raise TrainingError(f"generation {self._progress.generation} could not be saved: {self._save_error}")

    def _evaluate_if_over(self) -> None:
        """Evaluates the mean policy if training is over and no evaluation has been made."""
        if self.ending and self._progress.best is None:
            self._evaluate_if_due()
            self._checkpoint = capture_checkpoint(replace(self._run, progress=self._progress), self._conditions)

    def make_buffers(self) -> Buffers:
        """The policy's buffers after the generations so far."""
        return make_buffers(self._run, self._progress)

    def run_generation(self) -> dict[str, float]:
        """Runs one generation and returns its row of metrics."""
        started, before = time.perf_counter(), self._progress
        population, rollouts, rollout_seconds = self._evaluate_population()
        fitness = rollouts.fitness + self._config.evolution.reward_shift * rollouts.env_steps.mean(axis=1)
        self._report_problems(before.generation + 1, fitness, rollouts.faults)
        with np.errstate(over="ignore", invalid="ignore"):  # divergence is detected below or by the next ask
            # only strategies with such a population ask for sums
            sum_noise = partial(self._engine.weighted_noise_sums, cast(NoisePopulation, population))
            results = Results(fitness, rollouts.mean_squared_weights, sum_noise)
            metrics = tell_results(self._config.evolution.strategy, self._strategy, population, results)
            finite = np.isfinite(self._strategy.mean).all()
        seconds = time.perf_counter() - started
        self._progress = replace(
            before,
            generation=before.generation + 1,
            env_steps=before.env_steps + int(rollouts.env_steps.sum()),
            episode_length=float(rollouts.env_steps.mean()),
            moments=merge_moments([before.moments, *rollouts.moments]),
        )
        if not finite:
            raise FloatingPointError("the weights are no longer finite; is learning_rate too large?")
        score = self._evaluate_if_due()
        self._progress = replace(self._progress, seconds=time.perf_counter() - self._resumed_at)
        best = self._progress.best
        return {
            "generation": self._progress.generation,
            "env_steps": self._progress.env_steps,
            **compute_return_metrics(rollouts, fitness),
            "eval_return": score,
            "best_score": nan if best is None else best.score,
            **metrics,
            "num_members": len(population) - 1,
            "episode_length_mean": float(rollouts.env_steps.mean()),
            **compute_tally_metrics(rollouts.tallies, rollout_seconds / seconds),
            "env_steps_per_second": (self._progress.env_steps - before.env_steps) / seconds,
            "seconds": self._progress.seconds,
        }

    def _evaluate_population(self) -> tuple[Population, Rollouts, float]:
        """The generation's population, its rollouts and the seconds that they took.

        With `num_interactions` the population grows until its episodes have that many env steps.
        """
        generation, wanted = self._progress.generation, self._config.evolution.num_interactions
        context = self._make_training_context()
        name, strategy = self._config.evolution.strategy, self._strategy
        population, started = ask_population(name, strategy, generation), time.perf_counter()
        if wanted is None:
            return population, self._engine.evaluate(population, context), time.perf_counter() - started
        size = population_size = len(population) - 1
        limit = self._config.evolution.population_size_max
        most = LARGEST_GROWTH * population_size if limit is None else limit
        rounds = [self._engine.evaluate(population, context, range(size))]
        while sum(each.env_steps.sum() for each in rounds) < wanted and size + population_size <= most:
            population = ask_population(name, strategy, generation, size + population_size)
            rounds.append(self._engine.evaluate(population, context, range(size, size + population_size)))
            size += population_size
        # the mean policy comes last, as in a population that was of this size from the start
        rounds.append(self._engine.evaluate(population, context, range(size, size + 1)))
        return population, join_rollouts(rounds), time.perf_counter() - started

    def _is_due(self, every: int) -> bool:
        """Whether something that is done every `every` generations, and after the last one, is due now."""
        return self._progress.generation % every == 0 or bool(self.ending)

    @property
    def ending(self) -> str:
        """Why training is over: it has reached its return, env steps or generations. Empty while it goes on."""
        if self._is_stopped:
            return "the caller stopped it"
        config, progress = self._config, self._progress
        goal, best, most = config.evolution.stop_at_return, progress.best, config.evolution.max_env_steps
        if goal is not None and best is not None and best.score >= goal:
            return f"the best score, {best.score:.6g}, has reached stop_at_return {goal:.6g}"
        if most is not None and progress.env_steps >= most:
            return f"{progress.env_steps:,} of {most:,} env steps are done"
        if progress.generation >= config.evolution.generations:
            return f"{progress.generation} of {config.evolution.generations} generations are done"
        return ""

    def _make_training_context(self) -> Context:
        config, generation = self._config, self._progress.generation
        first_episode = generation * config.evolution.episodes_per_member
        return Context(
            purpose=Purpose.TRAINING,
            generation=generation,
            episodes=tuple(range(first_episode, first_episode + config.evolution.episodes_per_member)),
            independent_seeds=config.evolution.episode_seeds == "independent",
            max_episode_steps=self._compute_training_cap(),
            buffers=self.make_buffers(),
            observe_moments=config.evolution.observation_normalization,
        )

    def _compute_training_cap(self) -> int | None:
        """The cap on the env steps of a training episode, which may follow the mean length of previous episodes."""
        config, mean = self._config, self._progress.episode_length
        if config.evolution.episode_cap_factor is None:
            return config.evolution.max_episode_steps
        cap = config.evolution.episode_cap_min
        if mean is not None:
            cap = max(cap or 1, ceil(config.evolution.episode_cap_factor * mean))
        return min(filter(None, (cap, config.evolution.max_episode_steps)), default=None)

    def _report_problems(
        self, generation: int, fitness: Float64[np.ndarray, " members"], faults: Mapping[str, int]
    ) -> None:
        """Prints, once per kind, that members failed or that all tie; TrainingError if all members failed."""
        failed, ranked = int(np.isnan(fitness).sum()), fitness[:-1][~np.isnan(fitness[:-1])]  # the mean policy is last
        reasons = ", ".join(f"{reason} in {count} episodes" for reason, count in Counter(faults).most_common())
        if not len(ranked) and (len(fitness) > 2 or failed == 2):  # a single candidate may fail if its parent does not
            by_the_clock = self._config.engine.episode_timeout is not None
            advice = RESUME_ADVICE if by_the_clock else advise_environment_fix(self._config.settings)
            raise TrainingError(f"every member of generation {generation} failed: {reasons}", advice)
        kind, line = "", ""
        if failed:
            kind = ", ".join(sorted(faults))
            line = f"{failed} of {len(fitness)} members failed: {reasons}"
        elif len(ranked) > 1 and (ranked == ranked[0]).all():
            kind = "tied"
            line = f"all members have the same fitness, {ranked[0]:g}: it says nothing about the weights"
        if line and kind != self._last_problem:
            self._console.print_message(f"generation {generation}: {line}")
        self._last_problem = kind

    def _evaluate_if_due(self) -> float:
        """The score of the mean policy, NaN if no evaluation is due; also updates the best policy."""
        progress = self._progress
        if not self._is_due(self._config.evolution.eval_every):
            return nan
        score = self._evaluate_mean_policy()
        best_score = -inf if progress.best is None or not isfinite(progress.best.score) else progress.best.score
        if progress.best is None or score > best_score:
            self._progress = replace(progress, best=make_snapshot(self._run, progress, score))
        return score

    def _evaluate_mean_policy(self) -> float:
        """Mean return of the mean policy over fresh episodes, without the training-only wrappers."""
        config, generation = self._config, self._progress.generation
        rollouts = self._engine.evaluate(
            RepeatedPopulation(self._strategy.mean, config.evolution.eval_episodes),
            Context(
                purpose=Purpose.EVALUATION,
                generation=generation,
                episodes=(generation,),
                independent_seeds=True,
                max_episode_steps=choose_evaluation_cap(config),
                buffers=self.make_buffers(),
                observe_moments=False,
            ),
        )
        return float(rollouts.returns.mean())

    def _save(self, metrics: MetricsWriter) -> None:
        """Writes the last finished generation. If that fails, the previous checkpoint remains."""
        try:
            metrics.sync()
            self._files.save(self._checkpoint)
        except OSError as error:
            self._report_failed_save(error)
        else:
            self._saved, self._save_error = self._checkpoint, ""

    def _report_failed_save(self, error: OSError) -> None:
        """Prints, once per kind of error, that a generation was not saved. The next save that is due tries again."""
        reason = f"{error.strerror}: {error.filename}" if error.filename else str(error.strerror)
        if reason != self._save_error:
            generation = self._progress.generation
            self._console.print_message(f"generation {generation} not saved ({reason}); training goes on")
        self._save_error = reason


def choose_evaluation_cap(config: TrainConfig) -> int | None:
    """The cap of training episodes if the environment has no time limit of its own, else None.

    Without a limit an evaluation might never end.
    """
    environment = config.environment
    return None if has_time_limit(environment.id, environment.env_kwargs) else config.evolution.max_episode_steps
