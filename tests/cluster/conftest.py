"""A Ray cluster of several nodes on this machine, each with a raylet of its own, for the tests of this folder."""

import os
import secrets
import signal
import time
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

CLUSTER_SETTINGS = {
    **{"RAY_health_check_period_ms": "1000", "RAY_health_check_timeout_ms": "4000"},
    **{"RAY_health_check_failure_threshold": "3", "RAY_health_check_initial_delay_ms": "0"},
    **{"RAY_AUTH_MODE": "token", "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0", "RAY_USAGE_STATS_ENABLED": "0"},
}

HEAD = {"object_store_memory": 10**8, "dashboard_agent_listen_port": None}
"""Any free port, because other clusters may run on this machine."""


@pytest.fixture(scope="session")
def token(tmp_path_factory):
    """The environment that Ray needs, with a token. Ray reads it when it is imported."""
    path = tmp_path_factory.mktemp("token") / "auth_token"
    path.touch(mode=0o600)
    path.write_text(secrets.token_hex(32))
    os.environ.update(CLUSTER_SETTINGS, RAY_AUTH_TOKEN_PATH=str(path))
    return path


def list_processes(session):
    """Names by process id, of all processes that have a file of this session open, as its logs are. Not this one."""
    found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if any(str(file.readlink()).startswith(session) for file in (folder / "fd").iterdir()):
                found[int(folder.name)] = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode()
    found.pop(os.getpid(), None)
    return found


@contextmanager
def starting_cluster(token, **head):
    """A cluster. In the end no process of it is left, nor of a run on it."""
    from ray.cluster_utils import Cluster

    cluster = Cluster(initialize_head=True, head_node_args={**HEAD, **head})
    yield cluster
    session = cluster.head_node.get_session_dir_path()
    cluster.shutdown()
    until = time.monotonic() + 20
    while (left := list_processes(session)) and time.monotonic() < until:
        time.sleep(0.1)
    for process in left:
        os.kill(process, signal.SIGKILL)
    assert left == {}


class Nodes:
    """Nodes of a cluster. The head does no work, so that all others may go."""

    def __init__(self, cluster):
        self.cluster, self.address, self.sizes = cluster, cluster.address, {}

    def add(self, num_cpus=1):
        node = self.cluster.add_node(num_cpus=num_cpus, object_store_memory=10**8)
        self.sizes[node] = num_cpus
        return node

    def kill(self, node):
        """SIGKILL to the raylet and all its workers."""
        del self.sizes[node]
        self.cluster.remove_node(node, allow_graceful=False)

    def find_raylet(self, node):
        return next(process for kind, process in node.live_processes() if kind == "raylet")

    def find_workers(self, node):
        """Process ids of the node's actors."""
        raylet, found = str(self.find_raylet(node).pid), []
        for folder in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                parent = (folder / "stat").read_text().rpartition(")")[2].split()[1]
                if parent == raylet and b"ray::RayHost" in (folder / "cmdline").read_bytes():
                    found.append(int(folder.name))
        return found

    def keep(self, num_cpus=(1, 1)):
        """Exactly nodes of these numbers of CPUs, of those that are there and new ones."""
        kept = []
        for number in num_cpus:
            same = [node for node, cpus in self.sizes.items() if cpus == number and node not in kept]
            kept.append(same[0] if same else self.add(number))
        for node in self.sizes.keys() - set(kept):
            self.kill(node)
        return kept


@pytest.fixture(scope="module")  # an idle cluster keeps a tenth of a core busy
def nodes(token):
    with starting_cluster(token, num_cpus=0, include_dashboard=False) as cluster:
        yield Nodes(cluster)


@pytest.fixture(scope="module")
def joined(nodes):
    """This process is part of the cluster, as a user's own program may be, so that engines need not join it."""
    import ray

    ray.init(address=nodes.address, log_to_driver=False, logging_level="ERROR")
    yield nodes
    ray.shutdown()


@pytest.fixture(autouse=True)
def hard_timeout():
    """Ends the whole process if a test hangs."""
    import faulthandler

    faulthandler.dump_traceback_later(1200, exit=True)
    yield
    faulthandler.cancel_dump_traceback_later()
