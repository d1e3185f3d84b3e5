"""RayCluster: the nodes of a Ray cluster that may do the work of a run.

Nodes join and leave while the run goes on. One is used only after it has said what a run's bits depend on there.
"""

import logging
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

from hebbes.contracts.errors import describe_error, say
from hebbes.execution.ray_token import require_token
from hebbes.execution.ray_worker import describe_node

JOIN_SECONDS = 15.0
"""Time in which a cluster must let us in."""

FIRST_SECONDS = 10.0
"""Time for a CPU to become free, and for the other nodes to say what they are like once one may be used."""

REFRESH_SECONDS = 1.0
"""How often the list of nodes is read."""

TOLD_AFTER = 3
"""A line says that a node does not answer after so many attempts to ask what it is like."""

_TRIAL = "import sys, ray; ray.init(address=sys.argv[1], log_to_driver=False); print('joined')"


@dataclass(eq=False)
class Node:
    """A node that may be used."""

    id: str
    address: str
    cpus: int
    store: int
    """Bytes of its object store."""
    free: int
    """CPUs that nobody has, when the list of nodes was read. More if a worker has ended since."""


class RayCluster:
    """Joins a cluster, and knows its nodes.

    Args:
        address: HOST:PORT of its head; auto: the one that this machine is part of.
        allow_mixed_nodes: whether nodes on which a run may have other bits are used.
        modules: those of the user that the run names.
    """

    def __init__(self, address: str, allow_mixed_nodes: bool, modules: tuple[str, ...]):
        self._address, self._allow_mixed_nodes, self._modules = address, allow_mixed_nodes, modules
        if find_spec("ray") is None:
            raise ValueError(
                "engine ray needs the package ray, which is not installed: pip install 'ray[default]~=2.60'"
            )
        require_token()
        self._ours = describe_node(modules)
        self.nodes: dict[str, Node] = {}
        """The nodes that may be used, by their ids."""
        self._has_joined = False
        self._asked: dict[str, tuple[Node, Any]] = {}
        self._remote: dict[Any, Any] = {}
        self._refused: set[str] = set()
        self._unanswered: Counter[str] = Counter()
        self._failure = ""  # of the last node that has not answered
        self._read_at = 0.0
        self.join()
        self._wait_for_first_nodes()

    def join(self) -> None:
        """Connects to the cluster, unless this process is connected: a user's own program may be."""
        if "ray" not in sys.modules or not sys.modules["ray"].is_initialized():
            try_to_join(self._address)
        import ray  # optional; after the environment has been set

        self.ray: Any = ray
        if ray.is_initialized():
            return
        self._has_joined = True
        with _keep_signal_handler():
            ray.init(address=self._address, log_to_driver=False, logging_level=logging.ERROR, configure_logging=False)
        self._asked, self._read_at = {}, 0.0

    def leave(self) -> None:
        """Disconnects, unless it was connected before."""
        if self._has_joined:
            self.ray.shutdown()
        self._has_joined = False

    def run_on(self, node: Node, function: Any, *arguments: Any) -> Any:
        """Starts a short call on a node, which takes none of its CPUs; the reference of its answer."""
        return self._start(node, function, {"num_cpus": 0, "max_retries": 0}, arguments)

    def start_on(self, node: Node, actor_class: Any, *arguments: Any) -> Any:
        """Starts an actor on a node, with one CPU. Ray does not try again what fails."""
        return self._start(node, actor_class, {"num_cpus": 1, "max_restarts": 0, "max_task_retries": 0}, arguments)

    def _start(self, node: Node, work: Any, options: Mapping[str, int], arguments: Sequence[Any]) -> Any:
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy  # optional

        if work not in self._remote:  # Ray sends each of these to the nodes
            self._remote[work] = self.ray.remote(**options)(work)
        strategy = NodeAffinitySchedulingStrategy(node_id=node.id, soft=False)
        return self._remote[work].options(scheduling_strategy=strategy).remote(*arguments)

    def refresh(self) -> None:
        """Reads the list of nodes, once in `REFRESH_SECONDS`. New ones are asked what they are like."""
        if time.monotonic() >= self._read_at + REFRESH_SECONDS:
            self.join()
            for refusal in self._read_changes():
                say(f"{refusal}; it is not used")
            self._read_at = time.monotonic()

    def _read_changes(self) -> list[str]:
        """Takes note of nodes that have left, and of those that have answered. Returns why some are refused."""
        alive = self._read_nodes()
        for left in self.nodes.keys() - alive.keys():
            say(f"node {self.nodes.pop(left).address} is gone")
        for node in self.nodes.values():
            node.free = alive[node.id].free
        for new in alive.keys() - self.nodes.keys() - self._asked.keys() - self._refused:
            self._asked[new] = alive[new], self.run_on(alive[new], describe_node, self._modules)
        answered = [new for new, (_, answer) in self._asked.items() if self.ray.wait([answer], timeout=0)[0]]
        return [refusal for new in answered if (refusal := self._take_description(*self._asked.pop(new)))]

    def _read_nodes(self) -> dict[str, Node]:
        """The nodes that live and have CPUs for work, by their ids."""
        from ray._private.state import available_resources_per_node  # Ray has no public function for this

        free, nodes = available_resources_per_node(), {}
        for entry in self.ray.nodes():
            cpus, store = (int(entry["Resources"].get(name, 0)) for name in ("CPU", "object_store_memory"))
            if entry["Alive"] and cpus:
                identity = entry["NodeID"]
                num_free = int(free.get(identity, {}).get("CPU", 0))
                nodes[identity] = Node(identity, entry["NodeManagerAddress"], cpus, store, num_free)
        return nodes

    def _take_description(self, node: Node, answer: Any) -> str:
        """Uses the node if it is like this machine. Returns why not, or nothing."""
        exceptions = self.ray.exceptions
        try:
            reason = find_difference(self.ray.get(answer), self._ours)
        except (exceptions.RayTaskError, exceptions.RuntimeEnvSetupError) as error:  # such as a module that it lacks
            reason = f"cannot do the work: {describe_error(getattr(error, 'cause', None) or error)}"
        except exceptions.RayError as error:
            self._unanswered[node.id] += 1
            self._failure = f"node {node.address} does not answer: {describe_error(error)}"
            if self._unanswered[node.id] == TOLD_AFTER:
                say(f"{self._failure}; it is not used until it does")
            return ""  # it is gone already, or will be asked again
        else:
            reason = "" if self._allow_mixed_nodes else reason
        if not reason:
            self.nodes[node.id] = node
            return ""
        self._refused.add(node.id)
        return f"node {node.address} {reason}"

    def _wait_for_first_nodes(self) -> None:
        """ValueError if a first node is refused, or if no CPU is free.

        A node that is slow to answer may come later, if there is another one to begin with.
        """
        until = time.monotonic() + FIRST_SECONDS
        while True:
            refusals, is_free = self._read_changes(), any(node.free for node in self.nodes.values())
            is_over = time.monotonic() > until
            if is_over and not is_free and not self._asked:
                total = sum(node.cpus for node in self.nodes.values())
                reason = (total == 0 and self._failure) or f"none of the cluster's {total} CPUs is free"
                refusals.append(f"ray_address {self._address}: {reason}")
            if refusals:
                self.leave()
                raise ValueError(refusals[0])
            if (is_over and self.nodes) or (is_free and not self._asked):
                return
            time.sleep(0.05)


def find_difference(theirs: Mapping[str, str], ours: Mapping[str, str]) -> str:
    """What differs between a node and this machine, as one phrase; empty if nothing does."""
    names = [name for name in sorted({**theirs, **ours}) if theirs.get(name) != ours.get(name)]
    if not names:
        return ""
    parts = [f"{name} {theirs.get(name, 'missing')} (here {ours.get(name, 'missing')})" for name in names[:4]]
    more = f" and {len(names) - 4} more" * (len(names) > 4)
    return f"differs: {', '.join(parts)}{more}; --allow_mixed_nodes drops the promise of the same bits"


def try_to_join(address: str) -> None:
    """ValueError if the cluster does not let us in.

    Another process tries it, because Ray may try again for minutes, print, or end the process.
    """
    try:
        command = [sys.executable, "-c", _TRIAL, address]
        done = subprocess.run(command, capture_output=True, text=True, timeout=JOIN_SECONDS)  # noqa: S603
        output, ends = done.stdout + done.stderr, f"{(done.stderr.splitlines() or ['no reason given'])[-1]}"
    except subprocess.TimeoutExpired as error:
        output = b"".join(part for part in (error.stdout, error.stderr) if part).decode(errors="replace")
        ends = f"no answer in {JOIN_SECONDS:g} s"
    if "joined" in output.splitlines():
        return
    if "InvalidAuthToken" in output:
        mode = os.environ["RAY_AUTH_MODE"]
        ends = "the cluster has another token" if mode == "token" else "the cluster needs a token"
    elif "Version mismatch" in output:
        ends = " ".join(output[output.index("Version mismatch") :].split())
    elif "Could not find any running Ray instance" in output:
        ends = "this machine is part of no Ray cluster; start one with RAY_AUTH_MODE=token ray start --head"
    raise ValueError(f"ray_address {address}: {ends}")


@contextmanager
def _keep_signal_handler() -> Iterator[None]:
    """Ray replaces the handler of SIGTERM. Ours saves the run."""
    handler = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, handler)
