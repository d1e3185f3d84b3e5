"""RayEngine: the engine that evaluates chunks on the nodes of a Ray cluster.

A worker is an actor with one CPU and one thread, bound to the node that has most free CPUs. Ray itself tries
nothing again: the dispatch does. What many calls share is stored once, and each node fetches it once.
"""

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import inf
from pathlib import Path
from typing import Any
from weakref import finalize, ref

import numpy as np

from hebbes.contracts.engine import EngineError
from hebbes.contracts.errors import describe_error, join_lines, say
from hebbes.execution.chunk_engine import ChunkEngine
from hebbes.execution.chunks import Task
from hebbes.execution.ray_cluster import Node, RayCluster
from hebbes.execution.ray_worker import RayHost, end_if_stopped, find_loss
from hebbes.execution.transport import Host, Loss
from hebbes.registry.lookup import list_users_modules

POLL_SECONDS = 0.5
"""How often it looks for new nodes while no worker answers."""


class RayWorker:
    """An actor on a node."""

    def __init__(self, cluster: RayCluster, node: Node, make_host: Any):
        self.node, self._cluster = node, cluster
        self._actor = cluster.start_on(node, RayHost, make_host)
        self.calls: dict[Any, int | None] = {self._actor.describe.remote(): None}
        """Reference of an answer -> ticket. None: that of its start, or of the reason for its loss."""
        self._process: tuple[int, Path] | None = None
        self._is_lost = False

    @property
    def has_started(self) -> bool:
        """Whether it can do calls, or could until it was lost."""
        return self._process is not None

    def send(self, ticket: int, function: Callable[..., Any], arguments: Sequence[Any]) -> None:
        """Sends a call."""
        self.calls[self._actor.call.remote(function, *arguments)] = ticket

    def end_if_stopped(self) -> None:
        """Has its node look, and kill the process if it has been stopped."""
        assert self._process is not None, "it has a call"
        self._cluster.run_on(self.node, end_if_stopped, *self._process)

    def receive(self, answer: Any) -> list[tuple[int | None, Any]]:
        """The ticket and the answer that have arrived. After a loss, nothing until its reason is known."""
        exceptions, ticket = self._cluster.ray.exceptions, self.calls.pop(answer)
        try:
            value = self._cluster.ray.get(answer)
        except exceptions.RayTaskError as error:  # what cannot be unpickled there, or pickled
            return [(ticket, EngineError(describe_error(error.cause or error)))]
        except exceptions.RuntimeEnvSetupError as error:
            return [(ticket, EngineError(f"node {self.node.address}: {join_lines(error)}"))]
        except exceptions.RayError as error:
            return self._take_loss(error, exceptions)
        if isinstance(value, Loss):
            return [(None, replace(value, reason=f"{value.reason} on node {self.node.address}"))]
        if ticket is None:
            self._process = value
            return [(None, None)]
        return [(ticket, _copy_if_read_only(value))]

    def _take_loss(self, error: Exception, exceptions: Any) -> list[tuple[int | None, Any]]:
        """Asks the node for the reason, unless it is gone, or can start no worker."""
        address = self.node.address
        unschedulable = exceptions.ActorUnschedulableError, exceptions.TaskUnschedulableError, exceptions.NodeDiedError
        self._cluster.refresh()
        if isinstance(error, unschedulable) or self.node.id not in self._cluster.nodes:
            return [(None, Loss(f"node {address} is gone", "machine"))]
        if getattr(error, "actor_init_failed", False):
            return [(None, EngineError(f"no worker can start on node {address}: {describe_error(error)}"))]
        if self._is_lost:
            return [(None, Loss(f"worker died or was killed on node {address}: {describe_error(error)}", "unknown"))]
        self._is_lost, log = True, self._process and self._process[1]
        self.calls = {self._cluster.run_on(self.node, find_loss, log): None}
        return []

    def end(self) -> None:
        """Kills the actor."""
        self._cluster.ray.kill(self._actor)


class RayTransport:
    """Actors on the nodes of a cluster.

    Args:
        make_host: makes the host of a worker.
        threads: the largest number of workers; -1: as many as the cluster has CPUs.
        ray_address: see EngineOptions.
        allow_mixed_nodes: see EngineOptions.
        modules: those of the user that the run names.
    """

    threads_per_worker = capacity = 1
    starts_at_once = False

    def __init__(
        self,
        make_host: Callable[[], Host],
        threads: int,
        *,
        ray_address: str,
        allow_mixed_nodes: bool,
        modules: tuple[str, ...] = (),
    ) -> None:
        self._cluster = RayCluster(ray_address, allow_mixed_nodes, modules)
        self._make_host, self._most = make_host, inf if threads == -1 else threads
        self._shared: dict[int, tuple[ref[Any], Any]] = {}
        self._workers: list[RayWorker] = []
        self._has_small_store = False

    @property
    def num_workers(self) -> int:
        """The workers, and the CPUs that are free for more of them."""
        self._cluster.refresh()
        return int(min(self._most, len(self._workers) + sum(self._count_free_cpus().values())))

    @property
    def num_nodes(self) -> int:
        """Number of nodes that are used."""
        return len(self._cluster.nodes)

    def share(self, value: Any) -> Any:
        """A reference of the value, the same as long as the value lives. Then the cluster forgets it."""
        known = self._shared.get(id(value))
        if known is None or known[0]() is not value:
            self._cluster.join()
            try:
                reference = self._cluster.ray.put(value)
            except Exception as error:  # whatever a user's class raises
                raise EngineError(
                    f"{type(value).__name__} cannot be sent to the cluster: {describe_error(error)}"
                ) from error
            known = self._shared[id(value)] = ref(value), reference
            finalize(value, self._shared.pop, id(value), None).atexit = False
            self._check_stores()
        return known[1]

    def _check_stores(self) -> None:
        """Says once if what is shared now is larger than the object store of a node. Ray uses files for the rest."""
        from ray.experimental import get_object_locations  # optional

        found = get_object_locations([reference for _, reference in list(self._shared.values())])
        size = sum(each["object_size"] or 0 for each in found.values())
        small = min(self._cluster.nodes.values(), key=lambda node: node.store, default=None)
        if small is not None and size > small.store and not self._has_small_store:
            self._has_small_store = True
            say(
                f"what a generation shares, {size / 1e6:.0f} MB, does not fit into the object store of node "
                f"{small.address}, {small.store / 1e6:.0f} MB: Ray writes files, which is slower; "
                "ray start --object-store-memory=BYTES makes it larger"
            )

    def start_worker(self) -> RayWorker:
        """An actor on the node with most free CPUs."""
        ((node, _),) = self._count_free_cpus().most_common(1)
        self._workers.append(RayWorker(self._cluster, self._cluster.nodes[node], self.share(self._make_host)))
        return self._workers[-1]

    def _count_free_cpus(self) -> Counter[str]:
        """The free CPUs of each node, by its id. Those that workers are to have which are starting are not free."""
        starting = Counter(worker.node.id for worker in self._workers if not worker.has_started)
        return Counter({node.id: max(0, node.free - starting[node.id]) for node in self._cluster.nodes.values()})

    def wait(self, workers: Sequence[RayWorker], timeout: float) -> Sequence[tuple[RayWorker, int | None, Any]]:
        """The answers that have come; none after `timeout` seconds, or earlier."""
        asked = {answer: worker for worker in workers for answer in worker.calls}
        seconds = min(timeout, POLL_SECONDS)
        if not asked:
            time.sleep(seconds)
            return []
        ready, others = self._cluster.ray.wait(list(asked), num_returns=1, timeout=seconds)
        if ready and others:
            ready += self._cluster.ray.wait(others, num_returns=len(others), timeout=0)[0]
        return [(asked[each], *found) for each in ready for found in asked[each].receive(each)]

    def end_worker(self, worker: RayWorker) -> None:
        """Kills the actor."""
        worker.end()
        self._workers.remove(worker)
        worker.node.free += 1

    def close(self) -> None:
        """Ends all workers, and leaves the cluster."""
        for worker in self._workers:
            worker.end()
        self._workers.clear()
        self._shared.clear()
        self._cluster.leave()


def _copy_if_read_only(value: Any) -> Any:
    """The value. An array of Ray's, which cannot be written to, is copied."""
    return value.copy() if isinstance(value, np.ndarray) and not value.flags.writeable else value


class RayEngine(ChunkEngine):
    """Evaluates on the nodes of a Ray cluster."""

    transport_class = RayTransport
    uses_processes = True
    shares_memory = False
    own_options = ("ray_address", "allow_mixed_nodes")
    _transport: RayTransport

    def __init__(self, task: Task, **options: Any):
        super().__init__(task, **options, modules=find_modules_of_task(task))
        from ray import cloudpickle  # optional; after the cluster has been joined

        try:
            task.check_can_be_sent(cloudpickle.dumps)
        except ValueError:
            self.close()
            raise

    @property
    def metrics(self) -> Mapping[str, float]:
        """Nodes, workers, and chunks that are under way or were sent again."""
        return {
            "nodes": self._transport.num_nodes,
            "workers": self._dispatch.num_started,
            "chunks_outstanding": self._dispatch.num_undone,
            "chunks_sent_again": self._dispatch.num_sent_again,
        }


def find_modules_of_task(task: Task) -> tuple[str, ...]:
    """The modules of the user that a task needs."""
    spec = task.environment
    wrappers = [wrapper.name for wrapper in spec.all_wrappers]
    modules = {*task.modules, *spec.imports, type(task.agent.policy).__module__, *list_users_modules(wrappers)}
    return tuple(sorted(name for name in modules if name.partition(".")[0] not in ("hebbes", "__main__")))
