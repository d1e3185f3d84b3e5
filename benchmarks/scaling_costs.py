"""What `benchmarks/scaling.py` measures: costs of the driver and of workers, and real generations on Ray."""

import tempfile
import time
from collections.abc import Sequence
from statistics import median
from typing import Any, cast

import numpy as np
from scipy.optimize import nnls
from threadpoolctl import threadpool_limits

from benchmarks.cluster import LAYERS, make_rollouts, measure_driver
from benchmarks.scaling_model import NOISE_SUMS
from hebbes.contracts.engine import Context, Rollouts
from hebbes.contracts.population import NoisePopulation
from hebbes.contracts.randomness import Purpose
from hebbes.execution.chunk_rule import choose_chunk_rule
from hebbes.execution.dispatch import Dispatch
from hebbes.execution.in_process import InProcess
from hebbes.execution.join_rollouts import join_rollouts
from hebbes.execution.ray_engine import RayEngine, RayTransport
from hebbes.options.command_line import resolve_config
from hebbes.options.texts import format_options
from hebbes.training.evolution import Evolution
from hebbes.training.prepare import prepare
from hebbes.training.run_state import Run

ENVIRONMENTS = {"HalfCheetah-v5": 64, "CarRacing-v3": 64, "Humanoid-v5": 128}
"""Environment -> members of the measured generations."""
JOBS_PER_ACTOR, SLEEPS = 6, (0.5, 1.5)
DRIVER_SETTINGS = ((2_000, 64, 1), (2_000, 1_000, 1), (10_000, 64, 32), (100, 64, 32))
"""Members, workers and chunk size with which the driver's costs are measured."""
TURNS, WHOLE_EPISODE = 3, 1000


class Sleeper:
    """The host of an actor that sleeps instead of playing."""

    def abandon(self) -> None:
        """Nothing can be stopped."""

    def close(self) -> None:
        """Nothing is kept."""


def sleep(host: Sleeper, seconds: float, ids: range) -> Rollouts:
    """Rollouts of a chunk, after this time."""
    time.sleep(seconds)
    return make_rollouts(ids)


def answer_at_once(host: Sleeper) -> None:
    """Nothing."""


def draw_sleeps(actors: int) -> list[float]:
    """Seconds of the jobs of so many actors."""
    return list(np.random.default_rng(actors).uniform(*SLEEPS, actors * JOBS_PER_ACTOR))


def make_run(environment: str, folder: str) -> Run:
    """A run with the preset of this environment, whose own engine is not used."""
    flags = {"environment": environment, "folder": folder, "engine": "in_process", "threads": 1}
    flags |= {"population_size": ENVIRONMENTS[environment], "max_episode_steps": WHOLE_EPISODE}
    (run,) = prepare(resolve_config("static", format_options(flags)))
    return run


def make_context(run: Run, generation: int, cap: int) -> Context:
    """A training episode."""
    _, buffers = run.trainer.policy
    return Context(
        purpose=Purpose.TRAINING,
        generation=generation,
        episodes=(generation,),
        members_per_seed=None,
        max_episode_steps=cap,
        buffers=buffers,
        observe_moments=True,
    )


def draw_utilities(num_members: int) -> np.ndarray:
    """The utilities of members in the sums over two halves of them."""
    drawn = np.random.default_rng(0).normal(size=num_members)
    return np.stack([np.where(np.arange(num_members) // 2 % 2 == half, drawn, 0.0) for half in range(NOISE_SUMS)])


def fit(rows: Sequence[Sequence[float]], seconds: Sequence[float]) -> list[float]:
    """The costs, none of them negative, whose sums come closest to the measured seconds, relative to these."""
    matrix = np.array(rows, float) / np.array(seconds)[:, np.newaxis]
    scale = np.maximum(matrix.max(axis=0), 1e-300)
    return list(nnls(matrix / scale, np.ones(len(seconds)))[0] / scale)


@threadpool_limits.wrap(limits=1, user_api="blas")  # as in workers
def measure_workload(environment: str) -> dict[str, Any]:
    """The costs of a worker on one core, as the fields of a Workload."""
    with tempfile.TemporaryDirectory() as folder:
        run = make_run(environment, folder)
        assert isinstance(run.trainer, Evolution)
        default = choose_chunk_rule(run.task, None, uses_processes=True).size
        population = run.trainer.strategy.ask(0)
        rows, seconds, lengths = [], [], list[int]()
        for chunk_size in sorted({1, 4, default}, reverse=True):
            engine, members = InProcess(run.task, chunk_size=chunk_size, threads=1), range(chunk_size)
            engine.evaluate(population, make_context(run, 0, 1), members)  # makes simulators and compiles
            caps = [WHOLE_EPISODE] * TURNS + [max(1, max(lengths, default=WHOLE_EPISODE) // 4)] * TURNS
            for turn, cap in enumerate(caps, start=1):
                started = time.process_time()
                env_steps = engine.evaluate(population, make_context(run, turn, cap), members).env_steps
                seconds.append(time.process_time() - started)
                rows.append((env_steps.sum(), env_steps.max(), chunk_size))
                if cap == WHOLE_EPISODE and chunk_size == default:
                    lengths += env_steps.ravel().tolist()
            engine.close()
        members, started = range(2 * default), time.process_time()
        sum_noise = cast(NoisePopulation, population).weighted_noise_sums
        sum_noise(members, draw_utilities(len(members)), [1] * NOISE_SUMS)
        noise = (time.process_time() - started) / len(members)
        run.engine.close()
    env_step, batch_step, member = fit(rows, seconds)
    return {
        "name": environment,
        "num_weights": len(run.trainer.policy[0]),
        "lengths": lengths,
        **{"env_step": env_step, "batch_step": batch_step, "member": member, "noise": noise},
        "default_chunk_size": default,
    }


def measure_driver_costs() -> dict[str, float]:
    """The fields of a Driver."""
    rows, seconds = [], []
    for weights, layers in LAYERS.items():
        for members, workers, chunk_size in DRIVER_SETTINGS if weights < 10_000 else DRIVER_SETTINGS[2:]:
            found = measure_driver(members, layers, workers=workers, chunk_size=chunk_size)
            jobs = found["chunks"] + found["sum_calls"]
            vectors = 8 * NOISE_SUMS * weights * found["sum_calls"]
            rows.append((jobs, found["looks"], found["looks"] * workers, members, vectors, weights, 1.0))
            seconds.append(found["thread_seconds"])
    names = "job", "look", "look_of_worker", "member", "vector_byte", "weight", "generation"
    return dict(zip(names, fit(rows, seconds), strict=True))


def measure_actors(actors: int) -> float:
    """Seconds of a generation of jobs that sleep, on real actors."""
    dispatch = Dispatch(RayTransport(Sleeper, actors, ray_address="auto", allow_mixed_nodes=False))
    try:
        while dispatch.num_started < actors:
            do_sleeps(dispatch, [0.2] * actors)
        do_sleeps(dispatch, [0.2] * actors)
        started = time.perf_counter()
        join_rollouts(do_sleeps(dispatch, draw_sleeps(actors)))
        return time.perf_counter() - started
    finally:
        dispatch.close()


def do_sleeps(dispatch: Dispatch, seconds: Sequence[float]) -> list[Rollouts]:
    """The answers of jobs that sleep so long."""
    tickets = [
        dispatch.submit(sleep, each, range(32), home=("episodes", number)) for number, each in enumerate(seconds)
    ]
    answers = dict(dispatch.collect_each(tickets))
    return [answers[ticket] for ticket in tickets]


def measure_latency() -> float:
    """Seconds from the driver to a worker or back, on one machine."""
    dispatch = Dispatch(RayTransport(Sleeper, 1, ray_address="auto", allow_mixed_nodes=False))
    seconds = []
    for _ in range(200):
        started, of_driver = time.perf_counter(), time.thread_time()
        dispatch.collect([dispatch.submit(answer_at_once)])
        seconds.append(time.perf_counter() - started - (time.thread_time() - of_driver))
    dispatch.close()
    return median(seconds) / 2


def measure_run(environment: str, workers: int) -> float:
    """Seconds of a generation on Ray with so many workers."""
    with tempfile.TemporaryDirectory() as folder:
        run = make_run(environment, folder)
        options = {"ray_address": "auto", "allow_mixed_nodes": False}
        engine = RayEngine(run.task, threads=workers, **options)
        assert isinstance(run.trainer, Evolution)
        population, seconds = run.trainer.strategy.ask(0), []
        noisy, utilities = cast(NoisePopulation, population), draw_utilities(len(population))
        for turn in range(TURNS + 1):
            started = time.perf_counter()
            engine.evaluate(population, make_context(run, turn, WHOLE_EPISODE))
            engine.weighted_noise_sums(noisy, utilities, [1] * NOISE_SUMS)
            seconds.append(time.perf_counter() - started)
        engine.close()
        run.engine.close()
    return median(seconds[1:])
