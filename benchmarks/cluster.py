"""What a Ray cluster costs the driver: bytes, and its own processor time, a generation.

    python -m benchmarks.cluster --results cluster.json

The driver is real: `Evolution` with OpenAI-ES, the engine `ray`, its dispatch, Ray's calls and answers. Only the
workers are not. One actor of a local cluster stands for 64 of them. It answers at once what chunks of HalfCheetah-v5
would, with moments of the observations, and sums of noise that are zero. Processor time is that of all threads of the
driver's process, so it hardly depends on what else the machine does.

Bytes are the sizes of arguments and answers as Ray serializes them, without the headers of its messages. What all calls
of a generation share is counted once: each node fetches it.

How long a generation of 1,000 env steps a member takes on 64 cores is computed from the seconds of an env step on one
core, which are measured too, policy included.
"""

import argparse
import json
import os
import secrets
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from math import ceil
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from benchmarks.kept_results import KeptResults
from hebbes.contracts.engine import Rollouts
from hebbes.contracts.trainer import Progress
from hebbes.execution.chunk_engine import ChunkEngine
from hebbes.execution.chunk_rule import count_chunks
from hebbes.execution.observation_moments import MomentTally
from hebbes.execution.ray_engine import RayTransport, RayWorker
from hebbes.options.command_line import resolve_config
from hebbes.options.texts import format_options
from hebbes.statistics.table import format_table
from hebbes.training.prepare import prepare
from hebbes.training.run_state import Run

WORKERS, EPISODE_LENGTH, OBSERVATIONS, GENERATIONS = 64, 1000, 17, 3
MEMBERS = (100, 1_000, 10_000)
LAYERS = {1_098: (16, 41), 100_346: (256, 364)}
"""Number of weights -> hidden layers of HalfCheetah-v5's network."""


class Stand:
    """An actor that stands for many workers. It answers at once."""

    async def answer(self, name: str, *arguments: Any) -> Any:
        """What a worker would answer to a call of this function."""
        if name == "evaluate":
            return make_rollouts(arguments[1])
        if name == "weighted_noise_sums":
            return np.zeros((len(arguments[3]), len(arguments[0].center)))
        return ""


def make_rollouts(ids: range) -> Rollouts:
    """Rollouts of a chunk of HalfCheetah-v5."""
    count, tally = len(ids), MomentTally(len(ids))
    rng = np.random.default_rng(ids.start)
    for _ in range(2):
        tally.add(np.arange(count), rng.normal(size=(count, OBSERVATIONS)))
    names = "saturated_actions", "bounded_actions", "policy_seconds", "simulator_seconds"
    return Rollouts(
        returns=rng.normal(size=(count, 1)),
        env_steps=np.full((count, 1), EPISODE_LENGTH),
        mean_squared_weights=rng.random(count),
        moments=tally.compute_moments(),
        transitions=(None,) * count,
        tallies=dict.fromkeys(names, 1.0),
    )


class Traffic:
    """Counts bytes and calls, if it is switched on."""

    def __init__(self) -> None:
        self.is_on, self.bytes = False, Counter[str]()

    def add(self, kind: str, *values: Any) -> None:
        """Adds the sizes of these values as Ray serializes them. References have 28 bytes."""
        import ray

        if self.is_on:
            serialize = ray._private.worker.global_worker.get_serialization_context().serialize
            sizes = [28 if isinstance(value, ray.ObjectRef) else serialize(value).total_bytes for value in values]
            self.bytes[kind] += sum(sizes)


TRAFFIC = Traffic()


class StandWorker(RayWorker):
    """One of the workers for which the actor stands."""

    def __init__(self, transport: "StandTransport"):
        self._cluster, self._actor, self._is_lost = transport._cluster, transport.stand, False
        self._names: dict[int | None, str] = {}
        self.calls = {self._actor.answer.remote("start"): None}

    def send(self, ticket: int, function: Callable[..., Any], arguments: Sequence[Any]) -> None:
        """Sends a call."""
        name = self._names[ticket] = function.__name__
        self.calls[self._actor.answer.remote(name, *arguments)] = ticket
        TRAFFIC.add(name, function, *arguments)
        TRAFFIC.bytes[f"{name} calls"] += TRAFFIC.is_on

    def receive(self, answer: Any) -> list[tuple[int | None, Any]]:
        """The ticket and the answer."""
        answers = super().receive(answer)
        for ticket, value in answers:
            if ticket is not None:
                TRAFFIC.add(self._names.pop(ticket), value)
        return answers

    def end(self) -> None:
        """Nothing ends before the cluster."""


class StandTransport(RayTransport):
    """Ray's transport to the actor."""

    def __init__(self, *arguments: Any, **options: Any):
        super().__init__(*arguments, **options)
        self.stand = self._cluster.ray.remote(num_cpus=0)(Stand).options(max_concurrency=10_000).remote()

    @property
    def num_workers(self) -> int:
        """As many as it is told."""
        return int(self._most)

    def share(self, value: Any) -> Any:
        """A reference of the value."""
        if id(value) not in self._shared:
            TRAFFIC.add("broadcast", value)
        return super().share(value)

    def wait(self, workers: Sequence[Any], timeout: float) -> Sequence[tuple[Any, int | None, Any]]:
        """The answers that have come."""
        TRAFFIC.bytes["looks"] += 1
        return super().wait(workers, timeout)

    def start_worker(self) -> StandWorker:
        """One of the workers."""
        self._workers.append(StandWorker(self))
        return self._workers[-1]  # type: ignore[return-value]


class StandEngine(ChunkEngine):
    """The engine `ray` with the actor in place of its workers."""

    transport_class, uses_processes = StandTransport, True


def prepare_run(folder: str, members: int, layers: Sequence[int]) -> Run:
    """A run of HalfCheetah-v5 whose own engine has one thread."""
    flags = {"environment": "HalfCheetah-v5", "preset": "openai_es", "policy": "mlp", "population_size": members}
    flags |= {"threads": 1, "folder": folder, "engine": "in_process", "generations": 10**6, "max_episode_steps": 100}
    (run,) = prepare(resolve_config("static", format_options({**flags, "hidden_sizes": layers})))
    return run


def measure_env_step(layers: Sequence[int]) -> float:
    """Seconds of an env step on one core, with the policy and all else that a worker does in an evaluation."""
    with tempfile.TemporaryDirectory() as folder:
        run = prepare_run(folder, 32, layers)
        seconds = []
        for generation in range(GENERATIONS + 1):
            started = time.process_time()
            env_steps = run.trainer.advance(Progress(generation), run.engine).env_steps
            seconds.append((time.process_time() - started) / env_steps)
        run.engine.close()
    return min(seconds[1:])


def measure_driver(
    members: int, layers: Sequence[int], *, workers: int = WORKERS, chunk_size: int = 32
) -> dict[str, float]:
    """Processor seconds of the driver, those of its thread alone, and bytes, of a generation."""
    with tempfile.TemporaryDirectory() as folder:
        run = prepare_run(folder, members, layers)
        options: dict[str, Any] = {"ray_address": "auto", "allow_mixed_nodes": False}
        engine = StandEngine(run.task, chunk_size=chunk_size, threads=workers, **options)
        seconds, looks = [], []
        for generation in range(GENERATIONS + 2):  # the first one warms up, the last one counts bytes
            TRAFFIC.is_on = generation > GENERATIONS
            looks.append(TRAFFIC.bytes["looks"])
            TRAFFIC.bytes.clear()
            started = time.process_time(), time.thread_time()
            run.trainer.advance(Progress(generation), engine)
            seconds.append((time.process_time() - started[0], time.thread_time() - started[1]))
        engine.close()
        run.engine.close()
    counted = dict(TRAFFIC.bytes)
    return {
        "chunks": count_chunks(members + 1, chunk_size),
        "largest_chunk": ceil((members + 1) / count_chunks(members + 1, chunk_size)),
        "driver_seconds": median(whole for whole, _ in seconds[1:-1]),
        "thread_seconds": median(thread for _, thread in seconds[1:-1]),
        "looks": median(looks[2:]),
        "broadcast_bytes": counted["broadcast"],
        "evaluation_bytes": counted["evaluate"],
        "sum_bytes": counted["weighted_noise_sums"],
        "sum_calls": counted["weighted_noise_sums calls"],
    }


def describe(members: int, weights: int, measured: dict[str, float], env_step: float) -> dict[str, float]:
    """A row of the table."""
    rounds = ceil(measured["chunks"] / WORKERS)
    generation = rounds * measured["largest_chunk"] * EPISODE_LENGTH * env_step
    return {
        "members": members,
        "weights": weights,
        **measured,
        "evaluation_bytes_per_member": measured["evaluation_bytes"] / members,
        "generation_seconds": generation,
        "driver_share": measured["driver_seconds"] / generation,
    }


def start_ray(folder: str, num_cpus: int = 2) -> None:
    """A local cluster that needs a token, which nobody else knows."""
    token = Path(folder) / "auth_token"
    token.touch(mode=0o600)
    token.write_text(secrets.token_hex(32))
    os.environ.update(RAY_AUTH_MODE="token", RAY_AUTH_TOKEN_PATH=str(token), RAY_USAGE_STATS_ENABLED="0")
    import ray  # optional; after the environment has been set

    ray.init("local", num_cpus=num_cpus, include_dashboard=False, log_to_driver=False, object_store_memory=10**9)


def measure(kept: KeptResults, members: Sequence[int]) -> None:
    """Measures what the results lack."""
    for weights, layers in LAYERS.items():
        jobs: dict[str, Callable[[], Any]] = {f"env_step {weights}": partial(measure_env_step, layers)}
        jobs |= {f"{each} {weights}": partial(measure_driver, each, layers) for each in members}
        kept.measure(jobs)


def format_rows(rows: Sequence[dict[str, float]]) -> str:
    """The rows for people."""
    titles = "weights", "members", "chunks", "broadcast MB", "bytes a member", "sums MB", "driver s", "of a generation"
    lines = []
    for row in rows:
        cells = [f"{row[name]:,.0f}" for name in ("weights", "members", "chunks")]
        cells += [f"{row['broadcast_bytes'] / 1e6:.2f}", f"{row['evaluation_bytes_per_member']:,.0f}"]
        cells += [f"{row['sum_bytes'] / 1e6:.1f}", f"{row['driver_seconds']:.3f}", f"{row['driver_share']:.1%}"]
        lines.append(cells)
    return format_table(titles, lines)


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--results", type=Path, help="JSON file of the results so far; nothing is measured twice")
    parser.add_argument("--members", type=int, nargs="+", default=MEMBERS, help="population sizes")
    parser.add_argument("--json", action="store_true", help="print the rows as JSON")
    arguments = parser.parse_args()
    kept = KeptResults(arguments.results)
    results = kept.by_name
    names = [f"{what} {weights}" for weights in LAYERS for what in ("env_step", *arguments.members)]
    if any(name not in results for name in names):
        with tempfile.TemporaryDirectory() as folder:
            start_ray(folder)
            measure(kept, arguments.members)
    rows = [
        describe(members, weights, results[f"{members} {weights}"], results[f"env_step {weights}"])
        for weights in LAYERS
        for members in arguments.members
    ]
    print(json.dumps(rows) if arguments.json else format_rows(rows))


if __name__ == "__main__":
    main()
