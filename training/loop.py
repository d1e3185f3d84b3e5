"""The generation loop: ask, evaluate, tell, record, save."""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from math import inf, isfinite, nan
from pathlib import Path

import numpy as np

from contracts.engine import Context, Engine, Moments, Rollouts
from contracts.policy import Buffers
from contracts.randomness import Purpose
from contracts.strategy import Strategy
from reporting.console import Console
from reporting.metrics import MetricsWriter
from rollouts.chunks import Task
from rollouts.environment_ids import has_time_limit
from rollouts.moments import merged, standardisation
from strategies.populations import RepeatedPopulation
from training.config import TrainConfig
from training.policy_file import SavedPolicy, save_policy
from training.run_folder import commit, package_versions


@dataclass
class Progress:
    """What changes from generation to generation, beside the strategy."""

    generation: int = 0
    """Generations finished."""
    env_steps: int = 0
    moments: Moments | None = None
    best_score: float = -inf


@dataclass(frozen=True)
class Run:
    """A run that is ready to start."""

    config: TrainConfig
    task: Task
    strategy: Strategy
    engine: Engine
    folder: Path
    progress: Progress


class Trainer:
    """Runs the generations of one run and keeps its files up to date."""

    def __init__(self, run: Run):
        self._config, self._task, self._folder = run.config, run.task, run.folder
        self._strategy, self._engine, self._progress = run.strategy, run.engine, run.progress
        self._provenance = {"seed": run.config.seed, "commit": commit(), "packages": package_versions()}

    def run(self, console: Console, metrics: MetricsWriter) -> None:
        """Trains until the generations or the env steps are used up; saves `latest.dat` however it ends."""
        started = time.perf_counter()
        try:
            while not self._finished():
                row = self.generation(started)
                metrics.write(row)
                console.generation(row)
                if self._progress.generation % self._config.save_every == 0:
                    self._save("latest.dat", nan)
        finally:
            if self._progress.generation:
                self._save("latest.dat", nan)

    def _finished(self) -> bool:
        budget = self._config.max_env_steps
        return self._progress.generation >= self._config.generations or (
            budget is not None and self._progress.env_steps >= budget
        )

    def buffers(self) -> Buffers:
        """The policy's constants as they stand."""
        if not self._config.observation_normalization:
            return {}
        return standardisation(self._progress.moments, self._task.agent.policy.observation_shape)

    def generation(self, run_started: float) -> dict[str, float]:
        """Runs one generation and returns its row of metrics; `run_started` is of `time.perf_counter`."""
        started = time.perf_counter()
        config, progress = self._config, self._progress
        generation = progress.generation
        population = self._strategy.ask(generation)
        first_episode = generation * config.episodes_per_member
        rollouts = self._engine.evaluate(
            population,
            Context(
                purpose=Purpose.TRAINING,
                generation=generation,
                episodes=tuple(range(first_episode, first_episode + config.episodes_per_member)),
                independent_seeds=config.episode_seeds == "independent",
                max_episode_steps=config.max_episode_steps,
                buffers=self.buffers(),
                observe=config.observation_normalization,
            ),
        )
        figures = self._strategy.tell(population, rollouts.fitness, self._engine.combine)
        env_steps = int(rollouts.env_steps.sum())
        progress.env_steps += env_steps
        progress.generation += 1
        progress.moments = merged(m for m in (progress.moments, rollouts.moments) if m is not None)
        seconds = time.perf_counter() - started
        return {
            "generation": progress.generation,
            "env_steps": progress.env_steps,
            **_return_figures(rollouts),
            **self._scores(),
            **figures,
            "episode_length_mean": float(rollouts.env_steps.mean()),
            "env_steps_per_second": env_steps / seconds,
            "seconds": time.perf_counter() - run_started,
        }

    def _scores(self) -> dict[str, float]:
        """Evaluates the unperturbed policy where it is due, and keeps it as `best.dat` if none was better."""
        progress, score = self._progress, nan
        if progress.generation % self._config.eval_every == 0 or self._finished():
            score = self._evaluate()
            if score > progress.best_score or not (self._folder / "best.dat").exists():
                progress.best_score = score if isfinite(score) else -inf
                self._save("best.dat", score)
        return {"eval_return": score, "best_score": progress.best_score if isfinite(progress.best_score) else nan}

    def _evaluate(self) -> float:
        """Mean return of the unperturbed policy over fresh episodes, without the training-only wrappers."""
        config, progress = self._config, self._progress
        rollouts = self._engine.evaluate(
            RepeatedPopulation(self._strategy.mean, config.eval_episodes),
            Context(
                purpose=Purpose.EVALUATION,
                generation=progress.generation,
                episodes=(progress.generation,),
                independent_seeds=True,
                max_episode_steps=evaluation_cap(config),
                buffers=self.buffers(),
                observe=False,
            ),
        )
        return float(rollouts.returns.mean())

    def _save(self, name: str, score: float) -> None:
        provenance: Mapping[str, object] = {
            **self._provenance,
            "generation": self._progress.generation,
            "env_steps": self._progress.env_steps,
            "score": score,
            "score_episodes": self._config.eval_episodes,
        }
        save_policy(
            self._folder / name,
            SavedPolicy(
                policy=self._task.agent.policy,
                policy_name=self._config.policy,
                weights=self._strategy.mean,
                buffers=dict(self.buffers()),
                action_head=self._task.agent.action_head,
                environment=self._task.environment,
                provenance=provenance,
            ),
        )


def evaluation_cap(config: TrainConfig) -> int | None:
    """The cap on training episodes where the environment has no limit of its own, which would let it go on for ever."""
    return None if has_time_limit(config.environment) else config.max_episode_steps


def _return_figures(rollouts: Rollouts) -> dict[str, float]:
    """Figures of the perturbed members, failed ones left out, and of the unperturbed one, which comes last."""
    fitness, unperturbed = rollouts.fitness[:-1], float(rollouts.fitness[-1])
    valid = fitness[~np.isnan(fitness)]
    mean, std, high, low = (valid.mean(), valid.std(), valid.max(), valid.min()) if len(valid) else (nan,) * 4
    return {
        "return_mean": float(mean),
        "return_std": float(std),
        "return_max": float(high),
        "return_min": float(low),
        "unperturbed_return": unperturbed,
        "unperturbed_rank": nan if np.isnan(unperturbed) else 1 + int((valid > unperturbed).sum()),
        "failed_members": int(np.isnan(rollouts.returns[:-1]).any(axis=1).sum()),
    }
