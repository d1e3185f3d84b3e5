"""Refuses, before it starts, a run or an evaluation that needs more memory than is free."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import floor, log10, prod
from typing import Any

import hebbes.policies.kernels.linear  # noqa: F401  # the compiler takes memory before it is measured what is free
from hebbes.contracts.policy import count_reference_frames, estimate_state_bytes
from hebbes.environments.environment_spec import EnvironmentSpec
from hebbes.evaluation.play import make_evaluation_spec
from hebbes.execution.chunk_rule import ChunkRule, choose_chunk_rule
from hebbes.execution.chunks import Task
from hebbes.execution.engine_options import EngineOptions, resolve_num_threads, uses_processes
from hebbes.execution.episode import Agent
from hebbes.training.config import TrainConfig
from hebbes.training.free_memory import measure_free_memory
from hebbes.training.owners import find_trainer
from hebbes.training.run_memory import NO_SEARCH, NetworkSize, RunSize, Stage, count_simulators, estimate_memory
from hebbes.training.simulator_memory import measure_simulator_bytes

CONSIDERABLE = 1_000_000_000
"""A run that needs at least this many bytes prints how many."""
UNMEASURED = 16
"""Up to this many simulators are not measured, to save time. They take 0.5 GB at most, of the largest known."""


@dataclass(frozen=True)
class Knob:
    """An option that memory depends on."""

    name: str
    value: int
    least: int
    make_size: Callable[[Any], RunSize]
    """Returns the size of the run with another value of the option."""


def check_run_memory(config: TrainConfig, agent: Agent, environment: EnvironmentSpec) -> str:
    """A line on the memory that the run needs, empty if that is little; ValueError if it needs more than is free."""
    size = measure_run_size(config, agent, environment)
    return check_memory(size, _list_knobs(size), measure_free_memory())


def measure_run_size(config: TrainConfig, agent: Agent, environment: EnvironmentSpec) -> RunSize:
    """The size of a run. If it has many simulators, one of each kind is measured."""
    size = _make_run_size(config, agent, environment)
    size = _measure_simulators(size, environment, training=True)
    return _measure_simulators(size, make_evaluation_spec(environment), training=False)


def check_evaluation_memory(agent: Agent, environment: EnvironmentSpec, options: EngineOptions, episodes: int) -> str:
    """Like `check_run_memory`, for the episodes of one seed."""
    stage = _make_stage(environment, agent, options)
    size = RunSize(
        _measure_network(agent),
        NO_SEARCH,
        training=stage,
        test=stage,
        threads=resolve_num_threads(options.threads),
        test_episodes=episodes,
        morphologies=len(environment.morphologies),
        observation_size=prod(agent.policy.observation_shape),
    )
    size = _measure_simulators(size, environment, training=False)
    knobs = [
        Knob("episodes", episodes, 1, lambda n: replace(size, test_episodes=n)),
        Knob("threads", size.threads, 1, lambda n: replace(size, threads=n)),
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
        names = ", ".join(knob.name for knob in knobs)
        raise ValueError(
            f"a run with a policy of {size.network.num_params:,} parameters {costs}; no option alone saves enough "
            f"({names}); {size.search.advice}"
        )
    most = _round_down(_find_largest_fit(worst, free))
    raise ValueError(f"{worst.name} {worst.value} {costs}: at most about {most:,} fit")


def _make_run_size(config: TrainConfig, agent: Agent, environment: EnvironmentSpec) -> RunSize:
    """The size of a run, before its simulators are measured."""
    trainer, threads = find_trainer(config.trainer), config.engine.local_threads
    of_test = EngineOptions(threads=threads, episode_timeout=config.engine.episode_timeout)
    search = trainer.measure_search(config, agent.policy)
    return RunSize(
        _measure_network(agent, search.rank),
        search,
        training=_make_stage(environment, agent, config.engine, config.modules_of_members),
        test=_make_stage(make_evaluation_spec(environment), agent, of_test),
        threads=threads,
        eval_episodes=config.training.eval_episodes,
        test_episodes=config.run.test_episodes,
        morphologies=len(environment.morphologies),
        observation_size=prod(agent.policy.observation_shape),
        virtual_batch=count_reference_frames(agent.policy),
        normalizes_observations=trainer.normalizes_observations(config),
    )


def _make_stage(
    environment: EnvironmentSpec, agent: Agent, options: EngineOptions, modules: tuple[str, ...] = ()
) -> Stage:
    in_processes = uses_processes(options.resolve(environment.backend).engine)
    rule = choose_chunk_rule(
        Task(agent, environment, seed=0, modules=modules), options.chunk_size, uses_processes=in_processes
    )
    return Stage(in_processes, keeps_all=environment.backend == "envpool", chunk_rule=rule)


def _measure_network(agent: Agent, rank: int = 0) -> NetworkSize:
    """Sizes of the policy, whose weights are given by factors of this rank if it is not 0."""
    policy = agent.policy
    count = policy.layout.num_params
    largest = max((min(policy.layout.shapes[name]) for name in policy.layout.matrices), default=1)
    row = 4 * policy.layout.make_factor_layout(min(rank, largest)).num_params if rank else 4 * count
    return NetworkSize(count, row, estimate_state_bytes(policy, low_rank=rank > 0))


def _measure_simulators(size: RunSize, spec: EnvironmentSpec, *, training: bool) -> RunSize:
    """The size, with the measured bytes of a simulator of training, or else of the test, if there are many of them."""
    if count_simulators(size, training=training) <= UNMEASURED:
        return size
    stage = size.training if training else size.test
    members = size.search.population_size + 1 if training else size.test_episodes
    largest = stage.chunk_rule.compute_largest_chunk(members, size.threads)
    taken = measure_simulator_bytes(spec, largest, training=training)
    measured = replace(stage, simulator_bytes=taken)
    return replace(size, training=measured) if training else replace(size, test=measured)


def _list_knobs(size: RunSize) -> list[Knob]:
    """The options that a message may name. Of several that save the same memory it names the first."""

    def make_knob(option: str, least: int) -> Knob:
        return Knob(option, getattr(size, option), least, lambda n: replace(size, **{option: n}))

    def make_search_knob(option: str, field: str, least: int) -> Knob:
        value = getattr(size.search, field)
        return Knob(option, value, least, lambda n: replace(size, search=replace(size.search, **{field: n})))

    training, rule = size.training, size.training.chunk_rule
    largest = rule.compute_largest_chunk(size.search.population_size + 1, size.threads)
    chunk_size = largest if rule.is_even else rule.size
    return [
        *(make_search_knob(option, *field) for option, field in size.search.options.items()),
        make_knob("eval_episodes", 1),
        make_knob("test_episodes", 0),
        make_knob("virtual_batch", 0),
        Knob("chunk_size", chunk_size, 1, lambda n: replace(size, training=replace(training, chunk_rule=ChunkRule(n)))),
        make_knob("threads", 1),
    ]


def _compute_total(size: RunSize) -> int:
    return sum(estimate_memory(size).values())


def _find_largest_fit(knob: Knob, free: int) -> int:
    """A value of the option that fits, by bisection. It is the largest, unless a larger one takes less memory.

    It rarely does: with a few more members, chunks may be smaller.
    """
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
