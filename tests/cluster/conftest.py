"""A Ray cluster of several nodes on this machine, each with a raylet of its own, for the tests of this folder."""

import os
import secrets
from contextlib import suppress
from pathlib import Path

import pytest

CLUSTER_SETTINGS = {
    **{"RAY_health_check_period_ms": "1000", "RAY_health_check_timeout_ms": "2000"},
    **{"RAY_health_check_failure_threshold": "3", "RAY_health_check_initial_delay_ms": "0"},
    **{"RAY_AUTH_MODE": "token", "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0", "RAY_USAGE_STATS_ENABLED": "0"},
}


@pytest.fixture(scope="session")
def token(tmp_path_factory):
    """The environment that Ray needs, with a token. Ray reads it when it is imported."""
    path = tmp_path_factory.mktemp("token") / "auth_token"
    path.touch(mode=0o600)
    path.write_text(secrets.token_hex(32))
    os.environ.update(CLUSTER_SETTINGS, RAY_AUTH_TOKEN_PATH=str(path))
    return path


class Nodes:
    """Nodes of a cluster. The head does no work, so that all others may go."""

    def __init__(self):
        from ray.cluster_utils import Cluster

        self.cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False})
        self.address = self.cluster.address
        self.started = list(self.cluster.head_node.live_processes())

    def add(self, num_cpus=1):
        node = self.cluster.add_node(num_cpus=num_cpus, object_store_memory=10**8)
        self.started += node.live_processes()
        return node

    def kill(self, node):
        """SIGKILL to the raylet and all its workers."""
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
        """Exactly these nodes, of those that live and new ones."""
        for node in list(self.cluster.worker_nodes):
            self.cluster.remove_node(node, allow_graceful=False)
        return [self.add(number) for number in num_cpus]


@pytest.fixture(scope="session")
def nodes(token):
    made = Nodes()
    yield made
    made.cluster.shutdown()
    for _, process in made.started:
        process.kill()
        process.wait(10)


@pytest.fixture(autouse=True)
def hard_timeout():
    """Ends the whole process if a test hangs."""
    import faulthandler

    faulthandler.dump_traceback_later(150, exit=True)
    yield
    faulthandler.cancel_dump_traceback_later()
