"""A discrete-event simulation of a generation on a Ray cluster, from what its parts cost.

`benchmarks/scaling.py` measures the costs, and holds the simulation against real runs.

The driver does one thing after another: it hands out chunks, looks for answers, takes those that have come, adds up,
and updates. A worker plays a chunk. Then it waits until the driver has handed it the next one. When all chunks are
back, the workers sum noise in groups of parts, as `hebbes.execution.noise_sums` makes them.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from heapq import heappop, heappush
from math import ceil, log2

import numpy as np

from hebbes.execution.chunk_rule import count_chunks, cut_into_chunks
from hebbes.execution.noise_sums import PART_SIZE, group_parts

NOISE_SUMS = 2
"""Rows of `GaussianStrategy`'s noise sums."""


@dataclass(frozen=True)
class Driver:
    """Seconds that the driver takes for each of these."""

    job: float
    """To hand out a job and to take its answer. Half of it comes before the job."""
    look: float
    """To look whether answers have come. It takes all that have."""
    look_of_worker: float
    """What each worker adds to this."""
    member: float
    """To join a member's results, merge its moments, and rank it."""
    vector_byte: float
    """To take a byte of a noise sum, and add it."""
    weight: float
    """To ask and to update, for each weight."""
    generation: float
    """The rest."""


FREE = Driver(0, 0, 0, 0, 0, 0, 0)


@dataclass(frozen=True)
class Network:
    """What lies between the driver and its workers."""

    latency: float
    """Seconds from the driver to a worker or back, the worker's own calls included."""
    bandwidth: float
    """Bytes a second, of each host."""
    cpus_per_node: int


@dataclass(frozen=True)
class Workload:
    """What a worker does."""

    name: str
    num_weights: int
    lengths: Sequence[int]
    """Of episodes that were seen, in env steps."""
    env_step: float
    """Seconds of an env step of a chunk, for each member that still plays."""
    batch_step: float
    """The same, however many play."""
    member: float
    """Seconds to make a member's weights, and to begin its episode."""
    noise: float
    """Seconds of a member in a noise sum."""
    default_chunk_size: int

    def draw_chunks(self, sizes: Sequence[int], rng: np.random.Generator) -> list[float]:
        """Seconds of chunks of these sizes. Their episodes are drawn from those that were seen."""
        members, starts = np.array(sizes), np.cumsum([0, *sizes[:-1]])
        drawn = rng.choice(self.lengths, members.sum())
        longest, total = np.maximum.reduceat(drawn, starts), np.add.reduceat(drawn, starts)
        return list(members * self.member + longest * self.batch_step + total * self.env_step)


@dataclass(frozen=True)
class Generation:
    """Seconds of a generation and its parts, which follow each other."""

    broadcast: float
    evaluation: float
    sums: float
    update: float
    work: float
    """Of all workers together, added up."""

    @property
    def seconds(self) -> float:
        """All of it."""
        return self.broadcast + self.evaluation + self.sums + self.update


def do_jobs(
    durations: Sequence[float],
    num_workers: int,
    *,
    send: float = 0.0,
    look: float = 0.0,
    take: float = 0.0,
    latency: float = 0.0,
) -> float:
    """Seconds until the driver has all answers. An idle worker gets the next job as soon as the driver has time.

    Args:
        durations: seconds of each job on its worker, in the order in which they are handed out.
        num_workers: all are idle at first.
        send: seconds of the driver to hand out a job.
        look: seconds of the driver to find the answers that have come.
        take: seconds of the driver to take one of them.
        latency: seconds from the driver to a worker, and back.
    """
    now, done, waiting = 0.0, list[float](), iter(durations)

    def hand_out() -> None:
        nonlocal now
        if (duration := next(waiting, None)) is not None:
            now += send
            heappush(done, now + latency + duration + latency)

    for _ in range(num_workers):
        hand_out()
    while done:
        now = max(now, done[0]) + look
        count = 0
        while done and done[0] <= now:
            heappop(done)
            count += 1
        now += take * count
        for _ in range(count):
            hand_out()
    return now


def simulate(
    workload: Workload,
    driver: Driver,
    network: Network,
    *,
    num_workers: int,
    num_members: int,
    chunk_size: int,
    rng: np.random.Generator,
) -> Generation:
    """A generation of so many members on so many workers."""
    members = range(num_members)
    chunks = cut_into_chunks(members, count_chunks(num_members, chunk_size))
    half, look = driver.job / 2, driver.look + driver.look_of_worker * num_workers
    played = workload.draw_chunks([len(each) for each in chunks], rng)
    evaluation = do_jobs(played, num_workers, send=half, look=look, take=half, latency=network.latency)
    vector = 8 * NOISE_SUMS * workload.num_weights
    groups = group_parts(cut_into_chunks(members, count_chunks(num_members, PART_SIZE)), num_workers)
    summed = [workload.noise * sum(map(len, group)) for group in groups]
    take = half + vector * (driver.vector_byte + 1 / network.bandwidth)
    sums = do_jobs(summed, num_workers, send=half, look=look, take=take, latency=network.latency)
    num_nodes = ceil(num_workers / network.cpus_per_node)
    broadcast = 4 * workload.num_weights / network.bandwidth * ceil(log2(num_nodes + 1))
    update = driver.member * num_members + driver.weight * workload.num_weights + driver.generation
    return Generation(broadcast, evaluation, sums, update, work=sum(played) + sum(summed))


def simulate_one_core(workload: Workload, driver: Driver, num_members: int, rng: np.random.Generator) -> float:
    """Seconds of the same generation in one thread of one process, without a cluster, in chunks of the default size."""
    alone = replace(driver, job=0.0, look=0.0, look_of_worker=0.0, vector_byte=0.0)
    network = Network(0.0, np.inf, 1)
    size = workload.default_chunk_size
    made = simulate(workload, alone, network, num_workers=1, num_members=num_members, chunk_size=size, rng=rng)
    return made.seconds


@dataclass(frozen=True)
class Prediction:
    """What a generation costs on a cluster, with the chunk size that is best there."""

    num_workers: int
    num_members: int
    chunk_size: int
    seconds: float
    efficiency: float
    """Speed-up against one core, divided by the number of cores."""
    bottleneck: str
    """Without it a generation would be shortest."""

    @property
    def speed_up(self) -> float:
        """Against one core."""
        return self.efficiency * self.num_workers


def predict(
    workload: Workload, driver: Driver, network: Network, *, num_workers: int, num_members: int, seed: int = 0
) -> Prediction:
    """The generation with the best chunk size: a power of two, or the default."""
    sizes = {size for size in (1, 2, 4, 8, 16, 32) if size < workload.default_chunk_size}
    sizes.add(workload.default_chunk_size)

    def simulate_with(chunk_size: int, driver: Driver, network: Network) -> Generation:
        setting = {"num_workers": num_workers, "num_members": num_members, "chunk_size": chunk_size}
        return simulate(workload, driver, network, **setting, rng=np.random.default_rng(seed))

    made = {size: simulate_with(size, driver, network) for size in sizes}
    best = min(sizes, key=lambda size: made[size].seconds)
    one = simulate_one_core(workload, driver, num_members, np.random.default_rng(seed))
    free_network = replace(network, latency=0.0, bandwidth=np.inf)
    ideal = simulate_with(best, FREE, free_network)
    without = {
        "driver": simulate_with(best, FREE, network).seconds,
        "network": simulate_with(best, driver, free_network).seconds,
        "last chunks": made[best].seconds - ideal.evaluation - ideal.sums + ideal.work / num_workers,
    }
    bottleneck = min(without, key=lambda name: without[name])
    efficiency = one / made[best].seconds / num_workers
    return Prediction(num_workers, num_members, best, made[best].seconds, efficiency, bottleneck)
