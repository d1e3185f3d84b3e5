"""CEM-RL: the cross-entropy method, some of whose members are trained by TD3's gradients before they are evaluated.

Pourchot & Sigaud 2019, "CEM-RL: Combining evolutionary and gradient-based methods for policy search", arXiv 1810.01222,
algorithm 1; code apourchot/CEM-RL 1a45822. In a generation, with E env steps in the one before it and N RL individuals:

    for each RL individual: floor(E / N) steps of the critics with it, untrained, as the fixed target actor; targets
        follow after each; then E steps of the individual with a new optimizer; the critics stay
    every individual plays one episode without noise; all transitions enter the replay
    the Gaussian is refitted to the best half, the trained individuals where training has taken them

The Gaussian is that of `hebbes.strategies.cem` with their settings: logarithmic weights, and the variance around the
old mean, divided by the number of parents, plus an extra variance that tends from 1e-3 to 1e-5. One individual of an
antithetic pair is trained, never its mirror. Until `start_steps`, only training is withheld. Departures:

- All individuals of a generation meet the same start states. Theirs meet states of their own.
- Individuals that tie share their weights. Failed ones have none.
- Each number of an action has its own bounds. Theirs are rounded to whole numbers.
- Noise on target actions is in units of half their range, as in TD3. Theirs is not scaled.
- On the Gymnasium back end, an episode that ends in a terminal state at its time limit is terminal. Theirs never is,
  and EnvPool does not tell.
"""

from dataclasses import dataclass
from functools import partial
from math import nan, sqrt
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from jaxtyping import Float32, Float64

from hebbes.contracts.engine import Context, Engine, Rollouts
from hebbes.contracts.notices import make_failure_notices
from hebbes.contracts.option import option
from hebbes.contracts.plain_values import prefix_arrays
from hebbes.contracts.policy import Buffers
from hebbes.contracts.randomness import Purpose, make_generator
from hebbes.contracts.strategy import Results, SearchMemory
from hebbes.contracts.trainer import AllFailedError, Progress, TrainerState, UnitResult
from hebbes.hybrids import core, jobs
from hebbes.hybrids.algorithm import Algorithm
from hebbes.hybrids.core.settings import GradientSettings
from hebbes.hybrids.search_distribution import SearchSettings
from hebbes.hybrids.trained_population import TrainedPopulation
from hebbes.policies.mlp import MLP
from hebbes.strategies.cem import CEM, CEMSettings
from hebbes.strategies.core.populations import GaussianPopulation
from hebbes.strategies.core.samplers import check_members
from hebbes.strategies.core.shaping import compute_elite_weights

if TYPE_CHECKING:
    from hebbes.execution.chunks import Task

EXTRA_VARIANCE_LIMIT = 1e-5
EXTRA_VARIANCE_DECAY = 0.95
EXTRA_VARIANCE_START = 0.95 * 1e-3 + 0.05 * EXTRA_VARIANCE_LIMIT
"""Theirs starts at 1e-3 and moves before its first use."""
WORK_TALLIES = ("policy_seconds", "simulator_seconds", "critics_seconds")
"""Tallies of the seconds that workers work."""


@dataclass(frozen=True)
class CEMRLSettings(SearchSettings, GradientSettings):
    """Hyperparameters of CEM-RL."""

    members_option = "population_size"

    population_size: int = option(10, "individuals of a generation, in antithetic pairs: an even number", range=">= 4")
    rl_population: int = option(
        5, "individuals of a generation that are trained by gradients, at most one of each pair", range=">= 0"
    )
    batch_size: int = option(100, "transitions of a gradient step", range=">= 1")

    def __post_init__(self) -> None:
        super().__post_init__()
        check_members("population_size", self.population_size, "antithetic")
        if self.rl_population > self.population_size // 2:
            raise ValueError(
                f"rl_population must be in [0, {self.population_size // 2}], because at most one of each antithetic "
                f"pair is trained, got {self.rl_population}"
            )

    def count_members(self) -> int:
        """The population."""
        return self.population_size

    def count_actors(self) -> int:
        """The RL individuals."""
        return self.rl_population

    def count_actors_at_once(self) -> int:
        """One: they are trained one after another."""
        return 1

    def estimate_strategy_memory(self, num_params: int, members: int) -> SearchMemory:
        """The memory of the Gaussian."""
        return CEM.memory(self.make_cem_settings(), num_params, members)

    def make_cem_settings(self) -> CEMSettings:
        """The settings of the Gaussian."""
        return CEMSettings(
            population_size=self.population_size,
            sigma=sqrt(self.initial_variance),
            elite_share=0.5,
            elite_weights="log",
            variance_around="old",
            divide_variance=True,
            extra_variance=EXTRA_VARIANCE_START,
            extra_variance_schedule="asymptotic",
            extra_variance_decay=EXTRA_VARIANCE_DECAY,
            extra_variance_min=EXTRA_VARIANCE_LIMIT,
            sampler="antithetic",
        )


class CEMRL(Algorithm):
    """Unit: one generation."""

    Settings: ClassVar[type[CEMRLSettings]] = CEMRLSettings
    limits_time = True
    unit = "generation"

    def __init__(
        self,
        settings: CEMRLSettings,
        task: "Task",
        weights: Float32[np.ndarray, " params"],
        buffers: Buffers,
        max_episode_steps: int | None,
    ) -> None:
        """Starts with these weights as the mean."""
        assert isinstance(task.agent.policy, MLP)
        bounds = core.episodes.find_action_bounds(task)
        self._settings = settings
        self._setup = jobs.Setup(settings, task.agent.policy, bounds, task.seed, buffers, max_episode_steps)
        self.learner = core.learner.Learner(settings, task.agent.policy, bounds, task.seed)
        self.strategy = CEM(settings.make_cem_settings(), weights, task.seed)
        self._last_env_steps = 0  # of the last generation

    @property
    def actor(self) -> Float32[np.ndarray, " params"]:
        """The mean policy's weights."""
        return self.strategy.mean

    def advance(self, progress: Progress, engine: Engine) -> UnitResult:
        """Trains and evaluates one generation."""
        asked = self.strategy.ask(progress.units)
        assert isinstance(asked, GaussianPopulation)
        population = TrainedPopulation(asked, self._train(asked, progress, engine))
        rollouts = self._evaluate(population, progress.units, engine)
        num_failed, size = int(np.isnan(rollouts.fitness).sum()), self._settings.population_size
        if num_failed == size:
            raise AllFailedError("every member", rollouts.faults)
        for transitions in rollouts.transitions:
            if transitions is not None:
                self.learner.add(transitions)
        self._last_env_steps = int(rollouts.env_steps.sum())
        returns, squares = (np.append(each, nan) for each in (rollouts.fitness, rollouts.mean_squared_weights))
        results = Results(returns, squares, partial(engine.weighted_noise_sums, population))
        metrics = {
            **measure_trained_members(rollouts, list(population.trained)),
            **self.strategy.tell(population, results),
            **self.learner.take_metrics(),
        }
        notices = make_failure_notices(f"{num_failed} of {size} members", rollouts.faults, ["members"])
        return UnitResult(self._last_env_steps, metrics, notices)

    def _may_train(self, progress: Progress) -> bool:
        """Whether training is withheld no more."""
        return progress.env_steps > self._settings.start_steps and len(self.learner.replay) > 0

    def _train(
        self, population: GaussianPopulation, progress: Progress, engine: Engine
    ) -> dict[int, Float32[np.ndarray, " params"]]:
        """The RL individuals after their gradient steps; none as long as training is withheld."""
        if not self._may_train(progress):
            return {}
        members = range(0, 2 * self._settings.rl_population, 2)  # their mirrors have odd numbers
        rows = np.asarray(population.weights(members))
        rng = make_generator(self._setup.seed, Purpose.GRADIENTS, generation=progress.units)
        group_size = self._settings.count_actors_at_once()
        with self.learner.use_threads():
            for first in range(0, len(rows), group_size):
                self._train_group(rows[first : first + group_size], rng)
        return dict(zip(members, rows, strict=True))

    def _train_group(self, rows: Float32[np.ndarray, "individuals params"], rng: np.random.Generator) -> None:
        """Trains the critics with each of these individuals, then all of the individuals at once, in place."""
        self._train_critics(rows, rng)
        actors = self.learner.make_actors(rows)
        for _ in range(self._last_env_steps):
            self.learner.train_actors(actors, rng)
        actors.fetch_rows()

    def _train_critics(self, rows: Float32[np.ndarray, "individuals params"], rng: np.random.Generator) -> None:
        """Trains the critics with each of these individuals, as they were drawn, as the target actor."""
        learner = self.learner
        for row in rows:
            target_actor = learner.actor.copy(row[np.newaxis])
            for _ in range(self._last_env_steps // self._settings.rl_population):
                learner.train_critics(target_actor, rng)
                learner.critics.move_targets()

    def _evaluate(self, population: TrainedPopulation, generation: int, engine: Engine) -> Rollouts:
        """One episode of each individual."""
        context = Context(
            purpose=Purpose.TRAINING,
            generation=generation,
            episodes=(generation,),
            members_per_seed=None,
            max_episode_steps=self._setup.max_episode_steps,
            buffers=self._setup.buffers,
            collect_transitions=self._settings.rl_population > 0,
        )
        return engine.evaluate(population, context, range(self._settings.population_size))

    def get_state(self) -> TrainerState:
        """The Gaussian, the critics and the replay."""
        learned = self.learner.get_state()
        arrays = prefix_arrays("strategy", self.strategy.state_dict())
        values = {**learned.values, "last_env_steps": self._last_env_steps}
        return TrainerState({**learned.arrays, **arrays}, values, learned.segments)

    def set_state(self, state: TrainerState) -> None:
        """Continues from what `get_state` returned."""
        self.learner.set_state(state)
        self.strategy.load_state_dict(state.select_arrays("strategy"))
        self._last_env_steps = state.values["last_env_steps"]


def measure_trained_members(rollouts: Rollouts, trained: list[int]) -> dict[str, float]:
    """Metrics of the members' returns, without failed members; NaN where there are none. And of who was best."""
    returns = rollouts.fitness
    is_rl = np.isin(np.arange(len(returns)), trained)
    parents = compute_elite_weights(returns, len(returns) // 2) > 0
    return {
        "return_mean": _mean(returns),
        "return_max": float(np.nanmax(returns)),
        "return_min": float(np.nanmin(returns)),
        "rl_return_mean": _mean(returns[is_rl]),
        "es_return_mean": _mean(returns[~is_rl]),
        "failed_members": int(np.isnan(returns).sum()),
        "rl_share": float(is_rl.mean()),
        "rl_parent_share": _mean(is_rl[parents].astype(np.float64)),
        "work_seconds": sum(rollouts.tallies.get(name, 0.0) for name in WORK_TALLIES),
    }


def _mean(returns: Float64[np.ndarray, " members"]) -> float:
    valid = returns[~np.isnan(returns)]
    return float(valid.mean()) if len(valid) else nan
