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
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.cluster import start_ray
from benchmarks.kept_results import KeptResults
from benchmarks.scaling_costs import (
    ENVIRONMENTS,
    WHOLE_EPISODE,
    draw_sleeps,
    measure_actors,
    measure_driver_costs,
    measure_latency,
    measure_run,
    measure_workload,
)
from benchmarks.scaling_model import Driver, Network, Prediction, Workload, do_jobs, predict, simulate
from hebbes.reporting.figure import add_legend, make_figure, style_axes, write_figure

ACTORS = (8, 16, 32, 64)
CORES = (10, 30, 100, 300, 1_000, 3_000, 10_000)
POPULATIONS: dict[str, Callable[[int], int]] = {
    "10,000 members": lambda cores: 10_000,
    "20 a core": lambda cores: 20 * cores,
}
ONE_SECOND, LENGTHS = "episodes of 0.5 to 1.5 s", range(500, 1501)
"""Episodes of 1 ms an env step, with the weights of CarRacing-v3's network."""
CPUS_PER_NODE = 64


class Benchmark:
    """The results so far."""

    def __init__(self, path: Path | None, actors: Sequence[int], bandwidth: float):
        self._kept, self._actors, self._bandwidth = KeptResults(path), actors, bandwidth
        self.results = self._kept.by_name

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
            start_ray(folder, num_cpus=max([2, *self._actors]))
            self._kept.measure(jobs)

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
            half, look = self._driver.job / 2, self._driver.look + self._driver.look_of_worker * actors
            costs = {"send": half, "look": look, "take": half, "latency": self._network.latency}
            seconds = do_jobs(draw_sleeps(actors), actors, **costs)
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
        whole = [replace(each, name=f"{each.name}, whole episodes", lengths=[WHOLE_EPISODE]) for each in seen]
        image = seen[list(ENVIRONMENTS).index("CarRacing-v3")]
        second = replace(image, name=ONE_SECOND, lengths=LENGTHS, env_step=0.001, batch_step=0.0, default_chunk_size=1)
        return [*(each for each in seen if min(each.lengths) < WHOLE_EPISODE), *whole, second]


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
