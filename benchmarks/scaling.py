"""How training scales on a Ray cluster: speed-up and efficiency at 10 to 10,000 cores, simulated from measured costs.

    python -m benchmarks.scaling --results scaling.json --figure docs/figures/scaling.png

The costs of the driver are fitted to the processor time of its thread in `benchmarks/cluster.py`. Those of the workers
are fitted to chunks of several sizes of HalfCheetah-v5, CarRacing-v3 and Humanoid-v5 with their presets, on one core.
Then the simulation (`benchmarks/scaling_model.py`) is held against real runs on Ray: of these environments with 1 and 2
workers, and of 8 to 64 actors that sleep instead of playing. Nothing else should run meanwhile. Each result is written
when it is there, and is not measured again.
"""

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from scipy.optimize import nnls

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.cluster import LAYERS, make_rollouts, measure_driver, start_ray
from benchmarks.scaling_model import NOISE_SUMS, Driver, Network, Prediction, Workload, do_jobs, predict, simulate
from hebbes.contracts.engine import Context, Rollouts
from hebbes.contracts.randomness import Purpose
from hebbes.execution.dispatch import Dispatch
from hebbes.execution.in_process import InProcess
from hebbes.execution.join_rollouts import join_rollouts
from hebbes.execution.ray_engine import RayEngine, RayTransport
from hebbes.options.command_line import parse_config
from hebbes.reporting.figure import add_legend, make_figure, style_axes, write_figure
from hebbes.training.evolution import Evolution
from hebbes.training.prepare import prepare
from hebbes.training.run_state import Run

ENVIRONMENTS = {"HalfCheetah-v5": 64, "CarRacing-v3": 64, "Humanoid-v5": 128}
"""Environment -> members of the measured generations."""
ACTORS, JOBS_PER_ACTOR, SLEEPS = (8, 16, 32, 64), 6, (0.5, 1.5)
CORES = (10, 30, 100, 300, 1_000, 3_000, 10_000)
POPULATIONS: dict[str, Callable[[int], int]] = {
    "10,000 members": lambda cores: 10_000,
    "10 a core": lambda cores: 10 * cores,
}
ONE_SECOND = "episodes of 1 s"
CPUS_PER_NODE = 64
DRIVER_SETTINGS = ((2_000, 64, 1), (2_000, 1_000, 1), (10_000, 64, 32), (100, 64, 32))
"""Members, workers and chunk size with which the driver's costs are measured."""
TURNS = 3


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
    flags |= {"population_size": ENVIRONMENTS[environment], "max_episode_steps": 1000}
    words = [word for name, value in flags.items() for word in (f"--{name}", str(value))]
    (run,) = prepare(parse_config("static", words, __doc__))
    return run


def make_context(run: Run, generation: int) -> Context:
    """A training episode."""
    _, buffers = run.trainer.policy
    return Context(
        purpose=Purpose.TRAINING,
        generation=generation,
        episodes=(generation,),
        independent_seeds=False,
        max_episode_steps=1000,
        buffers=buffers,
        observe_moments=True,
    )


def fit(rows: Sequence[Sequence[float]], seconds: Sequence[float]) -> list[float]:
    """The costs, none of them negative, whose sums come closest to the measured seconds, relative to these."""
    matrix = np.array(rows, float) / np.array(seconds)[:, np.newaxis]
    scale = np.maximum(matrix.max(axis=0), 1e-300)
    return list(nnls(matrix / scale, np.ones(len(seconds)))[0] / scale)


def measure_workload(environment: str) -> dict[str, Any]:
    """The costs of a worker on one core, as the fields of a Workload."""
    with tempfile.TemporaryDirectory() as folder:
        run = make_run(environment, folder)
        assert isinstance(run.trainer, Evolution) and run.config.engine.chunk_size is not None
        default, population = run.config.engine.chunk_size, run.trainer.strategy.ask(0)
        rows, seconds, lengths = [], [], []
        for chunk_size in sorted({1, 4, default}):
            engine = InProcess(run.task, chunk_size=chunk_size, threads=1)
            for members in [range(start, start + chunk_size) for start in range(0, 2 * chunk_size, chunk_size)]:
                engine.evaluate(population, make_context(run, 0), members)  # makes simulators and compiles
                for turn in range(1, TURNS + 1):
                    started = time.perf_counter()
                    env_steps = engine.evaluate(population, make_context(run, turn), members).env_steps
                    seconds.append(time.perf_counter() - started)
                    rows.append((env_steps.sum(), env_steps.max(), chunk_size))
                    lengths += env_steps.ravel().tolist() if chunk_size == default else []
            engine.close()
        started, members = time.process_time(), range(2 * default)
        population.weighted_noise_sums(members, np.ones((NOISE_SUMS, len(members))), [1] * NOISE_SUMS)  # type: ignore[attr-defined]
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
            rows.append((jobs, jobs * workers, members, vectors, weights, 1.0))
            seconds.append(found["thread_seconds"])
    names = "job", "job_of_worker", "member", "vector_byte", "weight", "generation"
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
    tickets = [dispatch.submit(sleep, each, range(32), home=number) for number, each in enumerate(seconds)]
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
        engine = RayEngine(run.task, chunk_size=run.config.engine.chunk_size, threads=workers, **options)
        assert isinstance(run.trainer, Evolution)
        population, seconds = run.trainer.strategy.ask(0), []
        utilities = np.ones((NOISE_SUMS, len(population)))
        for turn in range(TURNS + 1):
            started = time.perf_counter()
            engine.evaluate(population, make_context(run, turn))
            engine.weighted_noise_sums(population, utilities, [1] * NOISE_SUMS)  # type: ignore[arg-type]
            seconds.append(time.perf_counter() - started)
        engine.close()
        run.engine.close()
    return median(seconds[1:])


class Benchmark:
    """The results so far."""

    def __init__(self, path: Path | None, actors: Sequence[int], bandwidth: float):
        self._path, self._actors, self._bandwidth = path, actors, bandwidth
        self.results: dict[str, Any] = json.loads(path.read_text()) if path is not None and path.exists() else {}

    def measure(self) -> None:
        """Measures what the results lack."""
        jobs: dict[str, Callable[[], Any]] = {"driver": measure_driver_costs, "latency": measure_latency}
        jobs |= {f"actors {actors}": partial(measure_actors, actors) for actors in self._actors}
        for name in ENVIRONMENTS:
            jobs |= {f"workload {name}": partial(measure_workload, name)}
            jobs |= {f"run {name} {workers}": partial(measure_run, name, workers) for workers in (1, 2)}
        if all(name in self.results for name in jobs):
            return
        with tempfile.TemporaryDirectory() as folder:
            start_ray(folder, num_cpus=max(self._actors, default=2))
            for name, job in jobs.items():
                if name not in self.results:
                    self.results[name] = job()
                    print(name, self.results[name], file=sys.stderr, flush=True)
                    if self._path is not None:
                        self._path.write_text(json.dumps(self.results, indent=1))

    @property
    def _driver(self) -> Driver:
        return Driver(**self.results["driver"])

    @property
    def _network(self) -> Network:
        return Network(self.results["latency"], self._bandwidth, CPUS_PER_NODE)

    def check(self) -> list[dict[str, Any]]:
        """Measured and simulated seconds of a generation."""
        rows = []
        for actors in self._actors:
            half = (self._driver.job + self._driver.job_of_worker * actors) / 2
            seconds = do_jobs(draw_sleeps(actors), actors, send=half, take=half, latency=self._network.latency)
            rows.append(
                {"what": "sleep", "workers": actors, "measured": self.results[f"actors {actors}"]}
                | {"simulated": seconds}
            )
        for name, members in ENVIRONMENTS.items():
            workload = Workload(**self.results[f"workload {name}"])
            for workers in (1, 2):
                size = {"num_members": members + 1, "chunk_size": workload.default_chunk_size, "num_workers": workers}
                drawn = [
                    simulate(workload, self._driver, self._network, **size, rng=np.random.default_rng(seed)).seconds
                    for seed in range(20)
                ]
                measured = self.results[f"run {name} {workers}"]
                rows.append(
                    {"what": name, "workers": workers, "measured": measured, "simulated": float(np.mean(drawn))}
                )
        return rows

    def predict(self) -> list[tuple[Workload, str, Prediction]]:
        """Every workload with every population on every number of cores."""
        return [
            (
                workload,
                population,
                predict(workload, self._driver, self._network, num_workers=cores, num_members=count(cores)),
            )
            for workload in self._list_workloads()
            for population, count in POPULATIONS.items()
            for cores in CORES
        ]

    def _list_workloads(self) -> list[Workload]:
        """The environments with the episodes that were seen and with whole ones, and episodes of a second."""
        seen = [Workload(**self.results[f"workload {name}"]) for name in ENVIRONMENTS]
        whole = [replace(each, name=f"{each.name}, whole episodes", lengths=[1000]) for each in seen]
        image = seen[list(ENVIRONMENTS).index("CarRacing-v3")]
        second = replace(image, name=ONE_SECOND, lengths=[1], env_step=1.0, batch_step=0.0, default_chunk_size=1)
        return [*(each for each in seen if np.mean(each.lengths) < 1000), *whole, second]


def format_checks(rows: Sequence[dict[str, Any]]) -> str:
    """Measured against simulated."""
    lines = [f"{'what':16} workers  measured s  simulated s  ratio"]
    for row in rows:
        ratio = row["simulated"] / row["measured"]
        lines.append(
            f"{row['what']:16} {row['workers']:7}  {row['measured']:10.2f}  {row['simulated']:11.2f}  {ratio:5.2f}"
        )
    return "\n".join(lines)


def format_predictions(rows: Sequence[tuple[Workload, str, Prediction]]) -> str:
    """A line for each prediction."""
    lines = [f"{'workload':30} {'population':15}  cores  chunk  seconds  speed-up  efficiency  bottleneck"]
    for workload, population, row in rows:
        lines.append(
            f"{workload.name:30} {population:15} {row.num_workers:6,} {row.chunk_size:6} {row.seconds:8.2f} "
            f"{row.speed_up:9,.0f} {row.efficiency:11.2f}  {row.bottleneck}"
        )
    return "\n".join(lines)


def draw(rows: Sequence[tuple[Workload, str, Prediction]], path: Path) -> None:
    """Draws efficiency against cores, for each population."""
    figure = make_figure(7, 3.6)
    panels = dict(zip(POPULATIONS, figure.subplots(1, 2, sharey=True), strict=True))
    for population, axes in panels.items():
        style_axes(axes)
        axes.set(title=population, xscale="log", xlabel="cores", ylim=(0, 1.05))
        names = dict.fromkeys(workload.name for workload, _, _ in rows)
        for name in names:
            line = [row for workload, own, row in rows if (workload.name, own) == (name, population)]
            axes.plot([row.num_workers for row in line], [row.efficiency for row in line], label=name)
    axes = panels[next(iter(panels))]
    axes.set_ylabel("efficiency")
    add_legend(figure, axes)
    write_figure(figure, path)


def main() -> None:
    """Measures, simulates and prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--results", type=Path, help="JSON file of the results so far; nothing is measured twice")
    parser.add_argument("--figure", type=Path, help="PNG or SVG file of the plot")
    parser.add_argument("--json", action="store_true", help="print checks and predictions as JSON")
    parser.add_argument("--actors", type=int, nargs="*", default=ACTORS, help="numbers of actors that sleep")
    parser.add_argument("--bandwidth", type=float, default=10.0, help="of the network, in Gbit/s (default: 10)")
    arguments = parser.parse_args()
    benchmark = Benchmark(arguments.results, arguments.actors, arguments.bandwidth * 1e9 / 8)
    benchmark.measure()
    checks, predictions = benchmark.check(), benchmark.predict()
    if arguments.figure is not None:
        draw(predictions, arguments.figure)
    if arguments.json:
        found = [{"workload": each.name, "population": name, **asdict(row)} for each, name, row in predictions]
        print(json.dumps({"checks": checks, "predictions": found}))
    else:
        print(format_checks(checks), format_predictions(predictions), sep="\n\n")


if __name__ == "__main__":
    main()
