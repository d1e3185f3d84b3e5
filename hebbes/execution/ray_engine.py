"""RayEngine: the engine that evaluates chunks on the nodes of a Ray cluster.

A worker is an actor with one CPU and one thread, bound to the node that has most CPUs without one. Ray itself tries
nothing again: the dispatch does. What many calls share is stored once, and each node fetches it once.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from math import inf
from typing import Any
from weakref import finalize, ref

import numpy as np

from hebbes.contracts.engine import EngineError
from hebbes.contracts.errors import describe_error, say
from hebbes.execution.chunk_engine import ChunkEngine
from hebbes.execution.chunks import Task
from hebbes.execution.ray_cluster import Node, RayCluster
from hebbes.execution.ray_worker import RayHost, find_crash
from hebbes.execution.transport import Host, Loss

POLL_SECONDS = 0.5
"""How often it looks for new nodes while no worker answers."""


class RayWorker:
    """An actor on a node."""

    def __init__(self, cluster: RayCluster, node: Node, make_host: Any):
        self.node, self._cluster, self._log = node, cluster, ""
        actor_class = cluster.ray.remote(num_cpus=1, max_restarts=0, max_task_retries=0)(RayHost)
        self._actor = actor_class.options(scheduling_strategy=cluster.bind_to(node)).remote(make_host)
        self.calls: dict[Any, int | None] = {self._actor.find_log.remote(): None}
        """Reference of an answer -> ticket. None: that of its start, or of the reason for its loss."""
        self._is_lost = False

    def send(self, ticket: int, function: Callable[..., Any], arguments: Sequence[Any]) -> None:
        """Sends a call."""
        self.calls[self._actor.call.remote(function, *arguments)] = ticket

    def receive(self, answer: Any) -> list[tuple[int | None, Any]]:
        """The ticket and the answer that have arrived. After a loss, nothing until its reason is known."""
        exceptions, ticket = self._cluster.ray.exceptions, self.calls.pop(answer)
        try:
            value = self._cluster.ray.get(answer)
        except exceptions.RayTaskError as error:  # what cannot be unpickled there, or pickled
            return [(ticket, EngineError(describe_error(error.cause or error)))]
        except exceptions.RayError as error:
            return self._take_loss(error)
        if self._is_lost:
            return [(None, Loss(f"{self._reason}; {value}" if value else self._reason, "call" if value else "kill"))]
        if ticket is None:
            self._log = value
            return [(None, None)]
        return [(ticket, _own(value))]

    def _take_loss(self, error: Exception) -> list[tuple[int | None, Any]]:
        """Asks the node for the reason. If it does not answer, it is gone too."""
        gone = self._is_lost or isinstance(error, self._cluster.ray.exceptions.ActorUnschedulableError)
        if gone or self.node.id not in self._cluster.nodes:
            return [(None, Loss(f"node {self.node.address} is gone", "machine"))]
        if getattr(error, "actor_init_failed", False):
            return [(None, EngineError(f"no worker can start on node {self.node.address}: {describe_error(error)}"))]
        if not self._log:
            return [(None, Loss(f"worker on node {self.node.address} died", "kill"))]
        self._is_lost, self._reason = True, f"worker on node {self.node.address} died"
        self.calls = {self._cluster.run_on(self.node, find_crash, self._log): None}
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
        """The CPUs of the nodes that are used."""
        self._cluster.refresh()
        return int(min(self._most, sum(node.cpus for node in self._cluster.nodes.values())))

    @property
    def num_nodes(self) -> int:
        """Number of nodes that are used."""
        return len(self._cluster.nodes)

    def share(self, value: Any) -> Any:
        """A reference of the value, the same as long as the value lives. Then the cluster forgets it."""
        known = self._shared.get(id(value))
        if known is None or known[0]() is not value:
            self._cluster.join()
            known = self._shared[id(value)] = ref(value), self._cluster.ray.put(value)
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
        """An actor on the node with most CPUs without a worker."""
        nodes = self._cluster.nodes.values()
        taken = {node.id: sum(worker.node.id == node.id for worker in self._workers) for node in nodes}
        node = max(nodes, key=lambda node: node.cpus - taken[node.id])
        self._workers.append(RayWorker(self._cluster, node, self.share(self._make_host)))
        return self._workers[-1]

    def wait(self, workers: Sequence[RayWorker], timeout: float | None) -> Sequence[tuple[RayWorker, int | None, Any]]:
        """The answers that have come; none after `timeout` seconds, or earlier."""
        asked = {answer: worker for worker in workers for answer in worker.calls}
        seconds = POLL_SECONDS if timeout is None else min(timeout, POLL_SECONDS)
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

    def close(self) -> None:
        """Ends all workers, and leaves the cluster."""
        for worker in self._workers:
            worker.end()
        self._workers.clear()
        self._shared.clear()
        self._cluster.leave()


def _own(value: Any) -> Any:
    """The value. An array of Ray's cannot be written to, and is copied."""
    return value.copy() if isinstance(value, np.ndarray) and not value.flags.writeable else value


class RayEngine(ChunkEngine):
    """Evaluates on the nodes of a Ray cluster."""

    transport_class = RayTransport
    uses_processes = True
    shares_memory = False
    own_options = ("ray_address", "allow_mixed_nodes")
    _transport: RayTransport

    def __init__(self, task: Task, **options: Any):
        super().__init__(task, **options, modules=list_users_modules(task))

    @property
    def metrics(self) -> Mapping[str, float]:
        """Nodes, workers, and chunks that are under way or were sent again."""
        return {
            "nodes": self._transport.num_nodes,
            "workers": self._dispatch.num_started,
            "chunks_outstanding": self._dispatch.num_undone,
            "chunks_sent_again": self._dispatch.num_sent_again,
        }


def list_users_modules(task: Task) -> tuple[str, ...]:
    """The modules of the user that a task names."""
    named = (*task.environment.imports, type(task.agent.policy).__module__)
    return tuple(sorted({name for name in named if name.partition(".")[0] not in ("hebbes", "__main__")}))
