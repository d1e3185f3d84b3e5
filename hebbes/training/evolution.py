"""Evolution: the trainers whose unit is a generation. They ask a strategy, evaluate the population, and tell it."""

import time
from collections.abc import Mapping
from functools import partial
from math import ceil
from typing import TYPE_CHECKING, ClassVar, cast

import numpy as np
from jaxtyping import Float32, Float64

from hebbes.contracts.engine import Context, Engine, Moments, Rollouts
from hebbes.contracts.notices import Notice, make_failure_notices
from hebbes.contracts.plain_values import prefix_arrays
from hebbes.contracts.policy import Buffers, Layout, Policy
from hebbes.contracts.population import NoisePopulation, Population
from hebbes.contracts.randomness import Purpose
from hebbes.contracts.strategy import Results, Strategy, TakesLayout
from hebbes.contracts.trainer import AllFailedError, Progress, SearchSize, Trainer, TrainerState, UnitResult
from hebbes.execution.join_rollouts import join_rollouts
from hebbes.execution.observation_moments import (
    NORMALIZATION_BUFFERS,
    make_normalization_buffers,
    merge_moments,
    read_moments,
)
from hebbes.registry.lookup import find_class, list_names
from hebbes.registry.users_classes import convert_errors, make_instance
from hebbes.training.config import TrainConfig
from hebbes.training.contract_checks import (
    call_part,
    check_metrics,
    check_population,
    check_row,
    check_state_dict,
    try_growth,
    try_strategy,
)
from hebbes.training.evolution_options import MEMBERS_PER_SEED, EvolutionOptions, HebbianEvolutionOptions
from hebbes.training.evolution_size import measure_evolution
from hebbes.training.generation_metrics import compute_return_metrics, compute_tally_metrics, join_metrics

if TYPE_CHECKING:
    from hebbes.execution.chunks import Task

LARGEST_CAP = 1e9
"""Env steps of an episode, which none has."""


class Evolution(Trainer):
    """Evolves static weights or learning rules: the policy decides what the parameters mean."""

    Options: ClassVar[type[EvolutionOptions]] = EvolutionOptions
    owner = "evolution"
    method_kind = "strategy"
    tuned_with_method = ("num_interactions", "population_size_max")
    unit = "generation"

    def __init__(self, config: TrainConfig, task: "Task", weights: Float32[np.ndarray, " params"], buffers: Buffers):
        """Starts from these parameters and buffers; ValueError if the strategy cannot do what the config asks."""
        self._config, self._policy = config, task.agent.policy
        self._options: EvolutionOptions = config.trainer_options
        self.num_units = self._options.generations
        measure_evolution(config, self._policy).check_state()
        make_strategy = partial(_make_strategy, config, self._policy.layout, weights)
        _check_start(config, make_strategy(), self._policy.layout)  # one that is thrown away: asking may change it
        self.strategy = make_strategy()
        self._constants = {name: array for name, array in buffers.items() if name not in NORMALIZATION_BUFFERS}
        self._moments = read_moments(buffers)
        self._episode_length: float | None = None  # mean of the last generation, in env steps, without failed episodes

    def __str__(self) -> str:
        return f"strategy {self._options.strategy!r}"

    @classmethod
    def normalizes_observations(cls, config: TrainConfig) -> bool:
        """Whether the option says so."""
        return bool(config.trainer_options.observation_normalization)

    @classmethod
    def measure_search(cls, config: TrainConfig, policy: Policy) -> SearchSize:
        """The population, and what the strategy keeps."""
        with convert_errors("strategy", config.trainer_options.strategy):
            return measure_evolution(config, policy)

    @property
    def policy(self) -> tuple[Float32[np.ndarray, " params"], Buffers]:
        """The mean policy, with the observation statistics so far."""
        layout = self._policy.layout
        mean = call_part(self, "mean", lambda: self.strategy.mean, partial(check_row, "mean", layout=layout))
        if not self._options.observation_normalization:
            return mean, self._constants
        shape, std_min = self._policy.observation_shape, self._options.observation_std_min
        statistics = make_normalization_buffers(self._moments, shape, std_min)
        return mean, {**self._constants, **statistics}

    def get_state(self) -> TrainerState:
        """The strategy's state and the moments of the observations."""
        state = call_part(self, "state_dict", self.strategy.state_dict, check_state_dict)
        arrays = prefix_arrays("strategy", state)
        if self._moments is not None:
            arrays |= {"moments.mean": self._moments.mean, "moments.squares": self._moments.squares}
        observations = None if self._moments is None else self._moments.count
        return TrainerState(arrays, {"episode_length": self._episode_length, "observations": observations})

    def set_state(self, state: TrainerState) -> None:
        """Continues from what `get_state` returned."""
        arrays, count = state.arrays, state.values["observations"]
        self._moments = None
        if count is not None:
            self._moments = Moments(count, arrays["moments.mean"], arrays["moments.squares"])
            if self._moments.mean.shape != self._policy.observation_shape:
                raise ValueError(f"statistics of {self._moments.mean.shape} for {self._policy.observation_shape}")
        self._episode_length = state.values.get("episode_length")
        with convert_errors("strategy", self._options.strategy):
            self.strategy.load_state_dict(state.select_arrays("strategy"))

    def advance(self, progress: Progress, engine: Engine) -> UnitResult:
        """Runs one generation."""
        started = time.perf_counter()
        population, rollouts, rollout_seconds = self._evaluate_population(progress.units, engine)
        fitness = rollouts.fitness + self._options.reward_shift * rollouts.env_steps.mean(axis=1)
        notices = find_problems(fitness, rollouts.faults)
        with np.errstate(over="ignore", invalid="ignore"):  # divergence is detected below or by the next ask
            # only strategies with such a population ask for sums
            sum_noise = partial(engine.weighted_noise_sums, cast(NoisePopulation, population))
            results = Results(fitness, rollouts.mean_squared_weights, sum_noise)
            metrics = call_part(self, "tell", partial(self.strategy.tell, population, results), check_metrics)
            finite = np.isfinite(self.policy[0]).all()
        if not finite:
            raise FloatingPointError("the weights are no longer finite; is learning_rate too large?")
        seconds = time.perf_counter() - started
        self._moments = merge_moments([self._moments, *rollouts.moments])
        self._episode_length = float(rollouts.env_steps[~np.isnan(rollouts.returns)].mean())  # of at least one member
        after = {
            "num_members": len(population) - 1,
            "episode_length_mean": self._episode_length,
            **compute_tally_metrics(rollouts.tallies, rollout_seconds / seconds),
        }
        row = join_metrics(compute_return_metrics(rollouts, fitness), metrics, after, self)
        return UnitResult(int(rollouts.env_steps.sum()), row, notices)

    def _evaluate_population(self, generation: int, engine: Engine) -> tuple[Population, Rollouts, float]:
        """The generation's population, its rollouts and the seconds that they took.

        With `num_interactions` the population grows until its episodes have that many env steps.
        """
        wanted = self._options.num_interactions
        context = self._make_context(generation)
        population, started = self._ask(generation), time.perf_counter()
        if wanted is None:
            return population, engine.evaluate(population, context), time.perf_counter() - started
        size = population_size = len(population) - 1
        most = self._options.limit_growth(population_size)
        rounds = [engine.evaluate(population, context, range(size))]
        while sum(each.env_steps.sum() for each in rounds) < wanted and size + population_size <= most:
            population = self._ask(generation, size + population_size)
            rounds.append(engine.evaluate(population, context, range(size, size + population_size)))
            size += population_size
        # the mean policy comes last, as in a population that was of this size from the start
        rounds.append(engine.evaluate(population, context, range(size, size + 1)))
        return population, join_rollouts(rounds), time.perf_counter() - started

    def _ask(self, generation: int, *num_members: int) -> Population:
        return call_part(
            self,
            "ask",
            partial(self.strategy.ask, generation, *num_members),
            lambda got: check_population(got, *num_members),
        )

    def _make_context(self, generation: int) -> Context:
        first_episode = generation * self._options.episodes_per_member
        return Context(
            purpose=Purpose.TRAINING,
            generation=generation,
            episodes=tuple(range(first_episode, first_episode + self._options.episodes_per_member)),
            members_per_seed=MEMBERS_PER_SEED[self._options.episode_seeds],
            max_episode_steps=self._compute_cap(),
            buffers=self.policy[1],
            observe_moments=self._options.observation_normalization,
        )

    def _compute_cap(self) -> int | None:
        """The cap on the env steps of a training episode, which may follow the mean length of previous episodes."""
        options, most = self._options, self._config.training.max_episode_steps
        if options.episode_cap_factor is None:
            return most
        cap = options.episode_cap_min
        if self._episode_length is not None:
            cap = max(cap or 1, ceil(min(options.episode_cap_factor * self._episode_length, LARGEST_CAP)))
        return min(filter(None, (cap, most)), default=None)


class HebbianEvolution(Evolution):
    """Evolution with another default policy."""

    Options = HebbianEvolutionOptions


def find_problems(fitness: Float64[np.ndarray, " members"], faults: Mapping[str, int]) -> list[Notice]:
    """What the user should know about members that failed or all tie. The mean policy comes last.

    AllFailedError if all members failed. A single candidate may fail if the mean policy does not.
    """
    *members, mean_policy = np.isnan(fitness).tolist()  # whether it failed
    if all(members) and (len(members) > 1 or mean_policy):
        raise AllFailedError("every member", faults)
    who = {"members": f"{sum(members)} of {len(members)} members"} if any(members) else {}
    who |= {"mean policy": "the mean policy"} if mean_policy else {}
    if who:
        return make_failure_notices(" and ".join(who.values()), faults, list(who))
    ranked = fitness[:-1]
    if len(ranked) > 1 and (ranked == ranked[0]).all():
        line = f"all members have the same fitness, {ranked[0]:g}: it says nothing about the weights"
        return [Notice(line, ["tied"])]
    return []


def _make_strategy(config: TrainConfig, layout: Layout, initial: Float32[np.ndarray, " params"]) -> Strategy:
    """The strategy at its start."""
    name, arguments = config.trainer_options.strategy, (config.settings, initial, config.run.seed)
    strategy: Strategy = make_instance("strategy", name, find_class("strategy", name), *arguments)
    if isinstance(strategy, TakesLayout):
        with convert_errors("strategy", name):
            strategy.take_layout(layout)
    return strategy


def _check_start(config: TrainConfig, strategy: Strategy, layout: Layout) -> None:
    """ValueError if nothing can be sampled, or if the population shall grow but cannot, or is too large for that."""
    try:
        population = try_strategy(config.trainer_options.strategy, strategy, layout)
    except FloatingPointError as error:
        raise ValueError(f"strategy {config.trainer_options.strategy} cannot start: {error}") from None
    if config.trainer_options.num_interactions is not None:
        _check_growth(config, strategy, population)


def _check_growth(config: TrainConfig, strategy: Strategy, population: Population) -> None:
    if not strategy.grows:
        growing = [name for name in list_names("strategy") if find_class("strategy", name).grows]
        raise ValueError(
            f"num_interactions is for strategies whose population can grow, {', '.join(growing)}; "
            f"got {config.trainer_options.strategy}"
        )
    least, most = 2 * (len(population) - 1), config.trainer_options.population_size_max
    if most is not None and most < least:
        raise ValueError(f"population_size_max must be >= twice population_size, {least}, got {most}")
    try_growth(config.trainer_options.strategy, strategy, population)
