"""The generation loop: ask, evaluate, tell, record, save."""

import time
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from math import ceil, inf, isfinite, nan
from pathlib import Path

import numpy as np
from jaxtyping import Float64

from hebbes.contracts.engine import Context, Engine, Rollouts
from hebbes.contracts.policy import Buffers
from hebbes.contracts.population import Population
from hebbes.contracts.randomness import Purpose
from hebbes.contracts.strategy import Strategy
from hebbes.environments.ids import has_time_limit
from hebbes.execution.chunks import Task, joined
from hebbes.execution.observation_moments import merged, standardisation
from hebbes.execution.repeated_population import RepeatedPopulation
from hebbes.files.checkpoint import Checkpoint, Progress, Snapshot
from hebbes.recording.console import Console
from hebbes.recording.metrics import MetricsWriter
from hebbes.recording.tensorboard import TensorboardWriter
from hebbes.training.advice import GO_ON, begin_anew, mend_first
from hebbes.training.advice import TrainingError as TrainingError
from hebbes.training.config import LARGEST_GROWTH, TrainConfig
from hebbes.training.contract_checks import ask_population, tell_fitness
from hebbes.training.generation_metrics import return_figures, tally_figures
from hebbes.training.provenance import conditions
from hebbes.training.run_folder import RunFiles


@dataclass(frozen=True)
class Run:
    """A run that is ready to start, or to go on."""

    config: TrainConfig
    task: Task
    strategy: Strategy
    engine: Engine
    folder: Path
    progress: Progress
    constants: Buffers = field(default_factory=dict)
    """The policy's buffers that training leaves as they are: all but the observation statistics."""
    needs: str = ""
    """What it takes of memory, where that is considerable."""
    lock: int | None = None
    """Descriptor that keeps other processes out of the folder."""


class Trainer:
    """Runs the generations of one run and keeps its files up to date."""

    def __init__(self, run: Run, console: Console):
        self._run, self._config, self._progress = run, run.config, run.progress
        self._strategy, self._engine = run.strategy, run.engine
        self._console = console
        self._resumed_at = time.perf_counter() - run.progress.seconds
        self._conditions = conditions()
        self._files = RunFiles(run.folder, run.task, run.config)
        self._checkpoint = captured(run, self._conditions)
        self._saved: Checkpoint | None = None
        self._noticed = self._trouble = ""

    def run(self, metrics: MetricsWriter, board: TensorboardWriter | None = None) -> None:
        """Trains until there is a reason to end, see `ending`.

        However it ends, the last finished generation is saved; TrainingError if it could not be.
        """
        try:
            if self.ending and self._progress.best is None:  # it was shortened before it was evaluated
                self._score()
                self._checkpoint = captured(replace(self._run, progress=self._progress), self._conditions)
            self._save(metrics)
            while not self.ending:
                best = self._progress.best
                try:
                    row = self.generation()
                except FloatingPointError as error:
                    where = f"generation {self._progress.generation + 1}"
                    raise TrainingError(f"{where}: {error}", begin_anew(self._config.settings)) from error
                try:
                    with suppress(OSError):  # the row is kept, and `_save` says what is wrong with the disk
                        metrics.write(row)
                except ValueError as error:  # of a user's strategy
                    raise TrainingError(f"strategy {self._config.strategy!r}: {error}") from error
                if board is not None:
                    with suppress(OSError):  # kept too, until it is closed
                        board.write(row)
                self._checkpoint = captured(replace(self._run, progress=self._progress), self._conditions)
                self._console.generation(row)
                if self._progress.best is not best or self._is_due(self._config.checkpoint_every):
                    self._save(metrics)
        finally:
            if self._saved is not self._checkpoint:
                self._save(metrics)
        if self._saved is not self._checkpoint:
            raise TrainingError(f"generation {self._progress.generation} could not be saved: {self._trouble}")

    def buffers(self) -> Buffers:
        """The policy's constants as they stand."""
        return _buffers(self._run, self._progress)

    def generation(self) -> dict[str, float]:
        """Runs one generation and returns its row of metrics."""
        started, before = time.perf_counter(), self._progress
        population, rollouts, rollout_seconds = self._rollouts()
        fitness = rollouts.fitness + self._config.reward_shift * rollouts.env_steps.mean(axis=1)
        self._notice(before.generation + 1, fitness, rollouts.faults)
        with np.errstate(over="ignore", invalid="ignore"):  # what diverges is found out below, or by the next ask
            figures = tell_fitness(self._config.strategy, self._strategy, population, fitness, self._engine.combine)
            finite = np.isfinite(self._strategy.mean).all()
        seconds = time.perf_counter() - started
        self._progress = replace(
            before,
            generation=before.generation + 1,
            env_steps=before.env_steps + int(rollouts.env_steps.sum()),
            episode_length=float(rollouts.env_steps.mean()),
            moments=merged([before.moments, *rollouts.moments]),
        )
        if not finite:
            raise FloatingPointError("the weights are no longer finite; is lr too large?")
        score = self._score()
        self._progress = replace(self._progress, seconds=time.perf_counter() - self._resumed_at)
        best = self._progress.best
        return {
            "generation": self._progress.generation,
            "env_steps": self._progress.env_steps,
            **return_figures(rollouts, fitness),
            "eval_return": score,
            "best_score": nan if best is None else best.score,
            **figures,
            "num_members": len(population) - 1,
            "episode_length_mean": float(rollouts.env_steps.mean()),
            **tally_figures(rollouts.tallies, rollout_seconds / seconds),
            "env_steps_per_second": (self._progress.env_steps - before.env_steps) / seconds,
            "seconds": self._progress.seconds,
        }

    def _rollouts(self) -> tuple[Population, Rollouts, float]:
        """The generation's members and their episodes, more and more until they have enough env steps; the seconds."""
        generation, wanted = self._progress.generation, self._config.num_interactions
        context = self._training_context()
        name, strategy = self._config.strategy, self._strategy
        population, started = ask_population(name, strategy, generation), time.perf_counter()
        if wanted is None:
            return population, self._engine.evaluate(population, context), time.perf_counter() - started
        size = popsize = len(population) - 1
        most = LARGEST_GROWTH * popsize if self._config.popsize_max is None else self._config.popsize_max
        rounds = [self._engine.evaluate(population, context, range(size))]
        while sum(each.env_steps.sum() for each in rounds) < wanted and size + popsize <= most:
            population = ask_population(name, strategy, generation, size + popsize)
            rounds.append(self._engine.evaluate(population, context, range(size, size + popsize)))
            size += popsize
        # the unperturbed policy comes last, as in a population that was of this size from the start
        rounds.append(self._engine.evaluate(population, context, range(size, size + 1)))
        return population, joined(rounds), time.perf_counter() - started

    def _is_due(self, every: int) -> bool:
        """Whether it is a generation for what is done every so many of them, and after the last one."""
        return self._progress.generation % every == 0 or bool(self.ending)

    @property
    def ending(self) -> str:
        """Why training is over: the return, env steps or generations asked for are reached. Empty while it goes on."""
        config, progress = self._config, self._progress
        goal, best, most = config.stop_at_return, progress.best, config.max_env_steps
        if goal is not None and best is not None and best.score >= goal:
            return f"the best score, {best.score:.6g}, has reached stop_at_return {goal:.6g}"
        if most is not None and progress.env_steps >= most:
            return f"{progress.env_steps:,} of {most:,} env steps are done"
        if progress.generation >= config.generations:
            return f"{progress.generation} of {config.generations} generations are done"
        return ""

    def _training_context(self) -> Context:
        config, generation = self._config, self._progress.generation
        first_episode = generation * config.episodes_per_member
        return Context(
            purpose=Purpose.TRAINING,
            generation=generation,
            episodes=tuple(range(first_episode, first_episode + config.episodes_per_member)),
            independent_seeds=config.episode_seeds == "independent",
            max_episode_steps=self._training_cap(),
            buffers=self.buffers(),
            observe=config.observation_normalization,
        )

    def _training_cap(self) -> int | None:
        """The cap on training episodes, which may follow the mean length of those before."""
        config, mean = self._config, self._progress.episode_length
        if config.episode_cap_factor is None:
            return config.max_episode_steps
        cap = config.episode_cap_min
        if mean is not None:
            cap = max(cap or 1, ceil(config.episode_cap_factor * mean))
        return min(filter(None, (cap, config.max_episode_steps)), default=None)

    def _notice(self, generation: int, fitness: Float64[np.ndarray, " members"], faults: Mapping[str, int]) -> None:
        """Says what went wrong with the members, once for each kind of it; TrainingError if none can be ranked."""
        failed, ranked = int(np.isnan(fitness).sum()), fitness[:-1][~np.isnan(fitness[:-1])]  # unperturbed comes last
        reasons = ", ".join(f"{reason} in {count} episodes" for reason, count in Counter(faults).most_common())
        if not len(ranked) and (len(fitness) > 2 or failed == 2):  # a lone candidate may fail beside its parent
            by_the_clock = self._config.episode_timeout is not None
            advice = GO_ON if by_the_clock else mend_first(self._config.settings)
            raise TrainingError(f"every member of generation {generation} failed: {reasons}", advice)
        kind, line = "", ""
        if failed:
            kind = ", ".join(sorted(faults))
            line = f"{failed} of {len(fitness)} members failed: {reasons}"
        elif len(ranked) > 1 and (ranked == ranked[0]).all():
            kind = "tied"
            line = f"all members have the same fitness, {ranked[0]:g}: it says nothing about the weights"
        if line and kind != self._noticed:
            self._console.message(f"generation {generation}: {line}")
        self._noticed = kind

    def _score(self) -> float:
        """Evaluates the unperturbed policy where it is due, and keeps it as the best if none was better."""
        progress = self._progress
        if not self._is_due(self._config.eval_every):
            return nan
        score = self._evaluate()
        best_score = -inf if progress.best is None or not isfinite(progress.best.score) else progress.best.score
        if progress.best is None or score > best_score:
            self._progress = replace(progress, best=_snapshot(self._run, progress, score))
        return score

    def _evaluate(self) -> float:
        """Mean return of the unperturbed policy over fresh episodes, without the training-only wrappers."""
        config, generation = self._config, self._progress.generation
        rollouts = self._engine.evaluate(
            RepeatedPopulation(self._strategy.mean, config.eval_episodes),
            Context(
                purpose=Purpose.EVALUATION,
                generation=generation,
                episodes=(generation,),
                independent_seeds=True,
                max_episode_steps=evaluation_cap(config),
                buffers=self.buffers(),
                observe=False,
            ),
        )
        return float(rollouts.returns.mean())

    def _save(self, metrics: MetricsWriter) -> None:
        """Writes the last finished generation; where the disk refuses, the checkpoint before it stays."""
        try:
            metrics.sync()
            self._files.save(self._checkpoint)
        except OSError as error:
            self._say_unsaved(error)
        else:
            self._saved, self._trouble = self._checkpoint, ""

    def _say_unsaved(self, error: OSError) -> None:
        """Says once that the disk refuses to take what is written; every later generation tries again."""
        trouble = f"{error.strerror}: {error.filename}" if error.filename else str(error.strerror)
        if trouble != self._trouble:
            self._console.message(f"generation {self._progress.generation} not saved ({trouble}); training goes on")
        self._trouble = trouble


def captured(run: Run, made_under: Mapping[str, str]) -> Checkpoint:
    """The run as it stands, of which nothing changes when the run goes on; `made_under` are `machine.conditions`."""
    strategy = {name: np.array(array) for name, array in run.strategy.state_dict().items()}
    latest = _snapshot(run, run.progress, nan)
    return Checkpoint(run.config.as_options(), made_under, run.progress, strategy, latest)


def _snapshot(run: Run, progress: Progress, score: float) -> Snapshot:
    weights = np.array(run.strategy.mean)  # a copy, whatever a strategy goes on to do with its own
    return Snapshot(progress.generation, progress.env_steps, score, weights, _buffers(run, progress))


def _buffers(run: Run, progress: Progress) -> Buffers:
    if not run.config.observation_normalization:
        return run.constants
    return {**run.constants, **standardisation(progress.moments, run.task.agent.policy.observation_shape)}


def evaluation_cap(config: TrainConfig) -> int | None:
    """The cap on training episodes where the environment has no limit of its own, which would let it go on for ever."""
    return None if has_time_limit(config.environment, config.env_kwargs) else config.max_episode_steps
