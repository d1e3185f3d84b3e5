"""Refuses, before it starts, a run or an evaluation that needs more memory than is free."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from math import floor, log10, prod
from typing import Any

import hebbes.policies.kernels.linear  # noqa: F401  # the compiler takes memory before it is measured what is free
from hebbes.contracts.policy import EstimatesState, count_reference_frames
from hebbes.contracts.strategy import EstimatesMemory, SearchMemory
from hebbes.environments.environment_spec import EnvironmentSpec
from hebbes.environments.simulator_memory import measure_simulator_bytes
from hebbes.evaluation.play import make_evaluation_spec
from hebbes.execution.engine_options import CHUNK_SIZES, choose_engine, resolve_num_threads
from hebbes.execution.episode import Agent
from hebbes.registry.lookup import find_class
from hebbes.strategies.core.samplers import LOW_RANK, ORTHOGONAL_BLOCK
from hebbes.training.config import TrainConfig
from hebbes.training.evolution_options import LARGEST_GROWTH
from hebbes.training.free_memory import measure_free_memory, measure_own_memory
from hebbes.training.run_memory import NO_SEARCH, Network, RunSize, Stage, count_simulators, estimate_memory

CONSIDERABLE = 1_000_000_000
"""A run that needs at least this many bytes prints how many."""
UNMEASURED = 16
"""Up to this many simulators are not measured, to save time. They take 0.5 GB at most, of the largest known."""
UNKNOWN_VECTORS = 10
"""Vectors of float64, with a number per parameter, that are assumed for a user's own strategy."""


@dataclass(frozen=True)
class Knob:
    """An option that memory depends on."""

    name: str
    value: int
    least: int
    make_size: Callable[[int], RunSize]
    """Returns the size of the run with another value of the option."""


def check_run_memory(config: TrainConfig, agent: Agent, environment: EnvironmentSpec) -> str:
    """A line on the memory that the run needs, empty if that is little; ValueError if it needs more than is free."""
    size = measure_run_size(config, agent, environment)
    return check_memory(size, _list_knobs(config, size), measure_free_memory())


def measure_run_size(config: TrainConfig, agent: Agent, environment: EnvironmentSpec) -> RunSize:
    """The size of a run. If it has many simulators, one of each kind is measured."""
    size = make_run_size(config, agent, environment)
    size = replace(size, training=_measure_simulators(size, size.training, environment, training=True))
    if not size.test_episodes:
        return size
    return replace(size, test=_measure_simulators(size, size.test, make_evaluation_spec(environment), training=False))


def check_evaluation_memory(
    agent: Agent, environment: EnvironmentSpec, *, episodes: int, threads: int, timed: bool
) -> str:
    """Like `check_run_memory`, for the episodes of one seed; `timed` means with an episode_timeout."""
    count, backend = resolve_num_threads(threads), environment.backend
    engine = choose_engine("auto", backend, count, 1.0 if timed else None)
    stage = Stage(engine == "workers", backend == "envpool", CHUNK_SIZES[backend])
    size = RunSize(
        _measure_network(agent, None),
        lambda population_size: NO_SEARCH,
        training=stage,
        test=stage,
        threads=count,
        test_episodes=episodes,
        morphologies=len(environment.morphologies),
        observation_size=prod(agent.policy.observation_shape),
    )
    size = replace(size, test=_measure_simulators(size, stage, environment, training=False))
    knobs = [
        Knob("episodes", episodes, 1, lambda n: replace(size, test_episodes=n)),
        Knob("threads", count, 1, lambda n: replace(size, threads=n)),
    ]
    return check_memory(size, knobs, measure_free_memory())


def check_memory(size: RunSize, knobs: list[Knob], free: int | None) -> str:
    """A line on the memory that is needed, empty if that is little.

    If it is more than `free` bytes: ValueError that names the option to reduce. None means that free memory is unknown.
    """
    terms = estimate_memory(size)
    needed = sum(terms.values())
    if free is None or needed <= free:
        available = "" if free is None else f", of {format_bytes(free)} that are free"
        return f"needs about {format_bytes(needed)} of memory{available}" if needed >= CONSIDERABLE else ""
    parts = sorted(terms.items(), key=lambda term: -term[1])[:3]
    described = ", ".join(f"{name} {format_bytes(taken)}" for name, taken in parts if taken > needed / 20)
    costs = f"would take about {format_bytes(needed)} of memory ({described}), and {format_bytes(free)} are free"
    worst = min(knobs, key=lambda knob: _compute_total(knob.make_size(knob.least)))
    if _compute_total(worst.make_size(worst.least)) > free:
        hint = "sep_cma_es keeps only a diagonal" if _has_matrices(size) else "a smaller policy needs less"
        raise ValueError(f"the policy's {size.network.num_params:,} parameters {costs}; {hint}")
    most = _round_down(_find_largest_fit(worst, free))
    raise ValueError(f"{worst.name} {worst.value} {costs}: at most about {most:,} fit")


def make_run_size(config: TrainConfig, agent: Agent, environment: EnvironmentSpec) -> RunSize:
    """The size of a run whose chunk size is known, before its simulators are measured."""
    settings, count = config.settings, resolve_num_threads(config.engine.threads)
    strategy, num_params = find_class("strategy", config.evolution.strategy), agent.policy.layout.num_params

    def estimate_search(population_size: int) -> SearchMemory:
        if isinstance(strategy, EstimatesMemory):
            return strategy.memory(settings, num_params, population_size)
        return SearchMemory(8 * UNKNOWN_VECTORS * num_params, 8 * UNKNOWN_VECTORS * num_params, 8 * num_params)

    def make_stage(backend: str, engine: str, timeout: float | None, chunk_size: int) -> Stage:
        chosen = choose_engine(engine, backend, count, timeout)
        return Stage(chosen == "workers", backend == "envpool", chunk_size)

    options = config.engine
    population_size, tested = _count_members(settings, num_params), make_evaluation_spec(environment).backend
    assert options.chunk_size is not None, "the caller has chosen one"
    return RunSize(
        _measure_network(agent, settings),
        estimate_search,
        training=make_stage(environment.backend, options.engine, options.episode_timeout, options.chunk_size),
        test=make_stage(tested, "auto", None, CHUNK_SIZES[tested]),
        threads=count,
        population_size=_count_largest_population(config, population_size),
        episodes_per_member=config.evolution.episodes_per_member,
        eval_episodes=config.evolution.eval_episodes,
        test_episodes=config.run.test_episodes,
        morphologies=len(environment.morphologies),
        observation_size=prod(agent.policy.observation_shape),
        virtual_batch=count_reference_frames(agent.policy),
        normalizes_observations=config.evolution.observation_normalization,
        independent_seeds=config.evolution.episode_seeds == "independent",
        noise_bytes=_count_noise_bytes(settings, population_size, num_params),
    )


def _count_members(settings: Any, num_params: int) -> int:
    """Members of a generation without the mean policy; 1 if the strategy's settings have no population_size."""
    members = getattr(settings, "choose_population_size", None)
    if callable(members):
        return int(members(num_params))
    return getattr(settings, "population_size", None) or getattr(settings, "popsize", None) or 1  # of a user's strategy


def _count_largest_population(config: TrainConfig, population_size: int) -> int:
    """The largest number of members, without the mean policy, to which a population may grow."""
    if config.evolution.num_interactions is None:
        return population_size
    most = (
        LARGEST_GROWTH * population_size
        if config.evolution.population_size_max is None
        else config.evolution.population_size_max
    )
    return max(
        population_size, min(most, config.evolution.num_interactions + population_size)
    )  # a member plays at least 1


def _measure_network(agent: Agent, settings: Any) -> Network:
    policy = agent.policy
    count = policy.layout.num_params
    low_rank = getattr(settings, "sampler", "") == LOW_RANK
    largest = max((min(policy.layout.shapes[name]) for name in policy.layout.matrices), default=1)
    row = 4 * policy.layout.make_factor_layout(min(settings.rank, largest)).num_params if low_rank else 4 * count
    state = policy.estimate_state_bytes(low_rank=low_rank) if isinstance(policy, EstimatesState) else 0
    return Network(count, row, state)


def _count_noise_bytes(settings: Any, population_size: int, num_params: int) -> int:
    """Bytes of other members' noise, in float64, from which orthogonal noise is made; 0 for other samplers."""
    if getattr(settings, "sampler", "") != "orthogonal":
        return 0
    return 8 * num_params * min(ORTHOGONAL_BLOCK, num_params, (population_size + 1) // 2)


def _measure_simulators(size: RunSize, stage: Stage, spec: EnvironmentSpec, *, training: bool) -> Stage:
    """The stage, with the measured bytes of a simulator if it has many of them."""
    if count_simulators(size, stage, training=training) <= UNMEASURED:
        return stage
    members = size.population_size + 1 if training else size.test_episodes
    taken = measure_simulator_bytes(spec, min(stage.chunk_size, members), measure_own_memory, training=training)
    return replace(stage, simulator_bytes=taken)


def _list_knobs(config: TrainConfig, size: RunSize) -> list[Knob]:
    """The options that a message may name. Of several that save the same memory it names the first."""

    def change_field(name: str) -> Callable[[int], RunSize]:
        changes: Callable[[int], Mapping[str, Any]] = lambda n: {name: n}  # noqa: E731
        return lambda n: replace(size, **changes(n))

    members = "population_size" if config.evolution.num_interactions is None else "population_size_max"
    change_chunk_size: Callable[[int], RunSize] = lambda n: replace(size, training=replace(size.training, chunk_size=n))  # noqa: E731
    return [
        Knob(members, size.population_size, 2, change_field("population_size")),
        Knob("eval_episodes", size.eval_episodes, 1, change_field("eval_episodes")),
        Knob("test_episodes", size.test_episodes, 0, change_field("test_episodes")),
        Knob("episodes_per_member", size.episodes_per_member, 1, change_field("episodes_per_member")),
        Knob("virtual_batch", size.virtual_batch, 0, change_field("virtual_batch")),
        Knob("chunk_size", size.training.chunk_size, 1, change_chunk_size),
        Knob("threads", size.threads, 1, change_field("threads")),
    ]


def _has_matrices(size: RunSize) -> bool:
    """Whether the search keeps a square matrix."""
    num_params = size.network.num_params
    return size.estimate_search(size.population_size).state >= 8 * num_params**2 > 8 * num_params


def _compute_total(size: RunSize) -> int:
    return sum(estimate_memory(size).values())


def _find_largest_fit(knob: Knob, free: int) -> int:
    """The largest value of the option that fits, by bisection. A larger value never takes less memory."""
    fits, too_many = knob.least, knob.value
    while too_many - fits > 1:
        middle = (fits + too_many) // 2
        if _compute_total(knob.make_size(middle)) <= free:
            fits = middle
        else:
            too_many = middle
    return fits


def _round_down(number: int) -> int:
    """The number rounded down to two digits. The estimate is not more precise than that."""
    unit = 10 ** max(0, floor(log10(number)) - 1) if number else 1
    return number // unit * unit


def format_bytes(number: float) -> str:
    """A number of bytes as text, such as 3.2 GB."""
    units = "bytes", "kB", "MB", "GB", "TB", "PB"
    power = min(len(units) - 1, max(0, floor(log10(number)) // 3)) if number >= 1 else 0
    size = number / 1000**power
    return f"{size:.1f} {units[power]}" if power > 0 and size < 100 else f"{size:.4g} {units[power]}"
