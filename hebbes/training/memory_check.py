"""Refuses a run or an evaluation that the memory would not hold, before it is made; says what a large one takes."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from math import floor, log10, prod
from typing import Any

from hebbes.contracts.strategy import SaysMemory, SearchMemory
from hebbes.environments.simulator_memory import simulator_bytes
from hebbes.environments.spec import EnvironmentSpec
from hebbes.evaluation.play import environment_for
from hebbes.execution.engines import CHUNK_SIZES, num_threads, plays_in_workers
from hebbes.execution.episode import Agent
from hebbes.policies.hebbian import Hebbian
from hebbes.registry.lookup import lookup
from hebbes.strategies.core.samplers import LOW_RANK, ORTHOGONAL_BLOCK
from hebbes.training.config import LARGEST_GROWTH, TrainConfig
from hebbes.training.free_memory import free_memory, own_memory
from hebbes.training.run_memory import NO_SEARCH, Network, RunSize, Stage, kept_simulators, run_memory

CONSIDERABLE = 1_000_000_000
"""Bytes from which on a run says what it needs."""
UNMEASURED = 16
"""Simulators that are so few that measuring one would take longer than it is worth; 0.5 GB of the dearest known."""
UNKNOWN_VECTORS = 10
"""Of float64, one number a parameter, that a strategy of the user's own may hold."""


@dataclass(frozen=True)
class Knob:
    """An option that memory depends on."""

    name: str
    value: int
    least: int
    sized: Callable[[int], RunSize]
    """The run with another value."""


def check_run(config: TrainConfig, agent: Agent, environment: EnvironmentSpec) -> str:
    """What the run needs, if that is considerable; ValueError where it does not fit into the memory that is free."""
    size = measure_run(config, agent, environment)
    return check_memory(size, _knobs(config, size), free_memory())


def measure_run(config: TrainConfig, agent: Agent, environment: EnvironmentSpec) -> RunSize:
    """The size of a run, with what its simulators take where there are many of them."""
    size = run_size(config, agent, environment)
    size = replace(size, training=_measured(size, size.training, environment, training=True))
    if not size.test_episodes:
        return size
    return replace(size, test=_measured(size, size.test, environment_for(environment), training=False))


def check_evaluation(agent: Agent, environment: EnvironmentSpec, *, episodes: int, threads: int, timed: bool) -> str:
    """As `check_run`, of the episodes of one seed; `timed` with an episode_timeout."""
    count, backend = num_threads(threads), environment.backend
    workers = plays_in_workers("auto", backend, count, 1.0 if timed else None)
    stage = Stage(workers, backend == "envpool", CHUNK_SIZES[backend])
    size = RunSize(
        _network(agent, None),
        lambda popsize: NO_SEARCH,
        training=stage,
        test=stage,
        threads=count,
        test_episodes=episodes,
        bodies=len(environment.bodies),
        observation_size=prod(agent.policy.observation_shape),
    )
    size = replace(size, test=_measured(size, stage, environment, training=False))
    knobs = [
        Knob("episodes", episodes, 1, lambda n: replace(size, test_episodes=n)),
        Knob("threads", count, 1, lambda n: replace(size, threads=n)),
    ]
    return check_memory(size, knobs, free_memory())


def check_memory(size: RunSize, knobs: list[Knob], free: int | None) -> str:
    """A line on what is needed, if that is considerable; ValueError naming the option that takes most if too much."""
    terms = run_memory(size)
    needed = sum(terms.values())
    if free is None or needed <= free:
        available = "" if free is None else f", of {as_bytes(free)} that are free"
        return f"needs about {as_bytes(needed)} of memory{available}" if needed >= CONSIDERABLE else ""
    parts = sorted(terms.items(), key=lambda term: -term[1])[:3]
    described = ", ".join(f"{name} {as_bytes(taken)}" for name, taken in parts if taken > needed / 20)
    costs = f"would take about {as_bytes(needed)} of memory ({described}), and {as_bytes(free)} are free"
    worst = min(knobs, key=lambda knob: _total(knob.sized(knob.least)))
    if _total(worst.sized(worst.least)) > free:
        hint = "sep_cma_es keeps only a diagonal" if _has_matrices(size) else "a smaller policy needs less"
        raise ValueError(f"the policy's {size.network.num_params:,} parameters {costs}; {hint}")
    raise ValueError(f"{worst.name} {worst.value} {costs}: at most about {_rounded(_most(worst, free)):,} fit")


def run_size(config: TrainConfig, agent: Agent, environment: EnvironmentSpec) -> RunSize:
    """The size of a run whose chunk size is known, its simulators not yet measured."""
    settings, count = config.settings, num_threads(config.threads)
    strategy, num_params = lookup("strategy", config.strategy), agent.policy.layout.num_params

    def search(popsize: int) -> SearchMemory:
        if isinstance(strategy, SaysMemory):
            return strategy.memory(settings, num_params, popsize)
        return SearchMemory(8 * UNKNOWN_VECTORS * num_params, 8 * UNKNOWN_VECTORS * num_params, 8 * num_params)

    def stage(backend: str, engine: str, timeout: float | None, chunk_size: int) -> Stage:
        return Stage(plays_in_workers(engine, backend, count, timeout), backend == "envpool", chunk_size)

    popsize, tested = _members(settings, num_params), environment_for(environment).backend
    assert config.chunk_size is not None, "the caller has chosen one"
    return RunSize(
        _network(agent, settings),
        search,
        training=stage(environment.backend, config.engine, config.episode_timeout, config.chunk_size),
        test=stage(tested, "auto", None, CHUNK_SIZES[tested]),
        threads=count,
        popsize=_grown(config, popsize),
        episodes_per_member=config.episodes_per_member,
        eval_episodes=config.eval_episodes,
        test_episodes=config.test_episodes,
        bodies=len(environment.bodies),
        observation_size=prod(agent.policy.observation_shape),
        virtual_batch=config.virtual_batch,
        observes=config.observation_normalization,
        independent_seeds=config.episode_seeds == "independent",
        noise_bytes=_noise_bytes(settings, popsize, num_params),
    )


def _members(settings: Any, num_params: int) -> int:
    """Perturbed members of a generation, as the settings of the strategy say; 1 where they have no popsize."""
    members = getattr(settings, "members", None)
    return members(num_params) if callable(members) else getattr(settings, "popsize", None) or 1


def _grown(config: TrainConfig, popsize: int) -> int:
    """The most members that a generation may come to have."""
    if config.num_interactions is None:
        return popsize
    most = LARGEST_GROWTH * popsize if config.popsize_max is None else config.popsize_max
    return max(popsize, min(most, config.num_interactions + popsize))  # every member plays an env step


def _network(agent: Agent, settings: Any) -> Network:
    policy = agent.policy
    count = policy.layout.num_params
    low_rank = getattr(settings, "sampler", "") == LOW_RANK
    largest = max((min(policy.layout.shapes[name]) for name in policy.layout.matrices), default=1)
    row = 4 * policy.layout.factors(min(settings.rank, largest)).num_params if low_rank else 4 * count
    state = 0
    if isinstance(policy, Hebbian):
        synapses = sum(map(prod, policy.plastic_shapes.values()))
        state = 4 * synapses * (1 + policy.eligibility) + 4 * count * low_rank
    return Network(count, row, state)


def _noise_bytes(settings: Any, popsize: int, num_params: int) -> int:
    """Orthogonal noise is made from that of the members before, in float64."""
    if getattr(settings, "sampler", "") != "orthogonal":
        return 0
    return 8 * num_params * min(ORTHOGONAL_BLOCK, num_params, (popsize + 1) // 2)


def _measured(size: RunSize, stage: Stage, spec: EnvironmentSpec, *, training: bool) -> Stage:
    """The stage with what its simulators take, where there are many of them."""
    if kept_simulators(size, stage, training=training) <= UNMEASURED:
        return stage
    members = size.popsize + 1 if training else size.test_episodes
    taken = simulator_bytes(spec, min(stage.chunk_size, members), own_memory, training=training)
    return replace(stage, simulator_bytes=taken)


def _knobs(config: TrainConfig, size: RunSize) -> list[Knob]:
    """The options that may be to blame, those first that are meant where several would do."""

    def field(name: str) -> Callable[[int], RunSize]:
        changes: Callable[[int], Mapping[str, Any]] = lambda n: {name: n}  # noqa: E731
        return lambda n: replace(size, **changes(n))

    members = "popsize" if config.num_interactions is None else "popsize_max"
    chunked: Callable[[int], RunSize] = lambda n: replace(size, training=replace(size.training, chunk_size=n))  # noqa: E731
    return [
        Knob(members, size.popsize, 2, field("popsize")),
        Knob("eval_episodes", size.eval_episodes, 1, field("eval_episodes")),
        Knob("test_episodes", size.test_episodes, 0, field("test_episodes")),
        Knob("episodes_per_member", size.episodes_per_member, 1, field("episodes_per_member")),
        Knob("virtual_batch", size.virtual_batch, 0, field("virtual_batch")),
        Knob("chunk_size", size.training.chunk_size, 1, chunked),
        Knob("threads", size.threads, 1, field("threads")),
    ]


def _has_matrices(size: RunSize) -> bool:
    """Whether the search keeps a square matrix."""
    return size.search(size.popsize).state >= 8 * size.network.num_params**2 > 8 * size.network.num_params


def _total(size: RunSize) -> int:
    return sum(run_memory(size).values())


def _most(knob: Knob, free: int) -> int:
    """The largest value that fits, by bisection: more never takes less."""
    fits, too_many = knob.least, knob.value
    while too_many - fits > 1:
        middle = (fits + too_many) // 2
        if _total(knob.sized(middle)) <= free:
            fits = middle
        else:
            too_many = middle
    return fits


def _rounded(number: int) -> int:
    """Down to two digits, which is as much as the estimate is worth."""
    unit = 10 ** max(0, floor(log10(number)) - 1) if number else 1
    return number // unit * unit


def as_bytes(number: float) -> str:
    """A size to read: 3.2 GB."""
    units = "bytes", "kB", "MB", "GB", "TB", "PB"
    power = min(len(units) - 1, max(0, floor(log10(number)) // 3)) if number >= 1 else 0
    size = number / 1000**power
    return f"{size:.1f} {units[power]}" if power > 0 and size < 100 else f"{size:.4g} {units[power]}"
