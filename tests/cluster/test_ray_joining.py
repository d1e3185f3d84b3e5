"""Who is let into a cluster and who is not: each refusal is one line, with status 2, and comes soon."""

import re
import secrets
import signal
import subprocess
import sys
from dataclasses import replace
from importlib.metadata import version
from threading import Timer

import numpy as np
import pytest

from hebbes.contracts.engine import EngineError
from hebbes.execution import ray_cluster, ray_worker
from hebbes.execution.episode import Agent
from hebbes.execution.ray_cluster import find_difference
from hebbes.execution.ray_token import require_token
from tests.cluster.ray_engines import Unsendable, find_bits, make_ray_engine
from tests.cluster.ray_programs import SHORT, copy_sources, find_run, finish, read_weights, start_training
from tests.execution.scripted_tasks import make_task
from tests.execution.test_engines import collect_answers
from tests.python_process import ROOT
from tests.waiting import wait_until

pytestmark = pytest.mark.ray
OWN, PYTHON = version("ray"), sys.version.split()[0]


def read_refusal(process):
    """The only line of a program that is refused."""
    output, errors = process.communicate(timeout=400)  # several programs at once
    assert (process.returncode, output) == (2, ""), errors
    (line,) = errors.splitlines()
    return line.partition(": error: ")[2]


def make_other_version(folder):
    """A folder that makes Ray another version for programs that have it in their path."""
    (folder / "sitecustomize.py").write_text("import ray\nray.__version__ = '1.2.3'\n")
    return folder


def test_without_the_package_it_says_how_to_install_it(nodes, monkeypatch):
    monkeypatch.setattr(ray_cluster, "find_spec", lambda name: None)
    with pytest.raises(ValueError, match=r"not installed: pip install 'ray\[default\]~=2.60'"):
        make_ray_engine(nodes, make_task())


def test_bad_input_is_refused_in_one_line(nodes, tmp_path):
    nodes.keep((1,))
    wrong, open_to_all = tmp_path / "wrong", tmp_path / "open"
    for path, mode in ((wrong, 0o600), (open_to_all, 0o644)):
        path.touch(mode)
        path.chmod(mode)
        path.write_text(secrets.token_hex(32))
    in_folder = ("--folder", tmp_path, "--engine", "ray")
    joining = (*SHORT, *in_folder, "--ray_address")
    absent = str(tmp_path / "absent")
    expected = {
        start_training(*joining, nodes.address, RAY_AUTH_TOKEN_PATH=str(wrong)): f"ray_address {nodes.address}: the "
        "cluster has another token",
        start_training(*joining, nodes.address, RAY_AUTH_MODE="disabled"): f"ray_address {nodes.address}: the cluster "
        "needs a token",
        start_training(*joining, nodes.address, RAY_AUTH_TOKEN_PATH=absent): f"engine ray needs a token, and {absent} "
        "cannot be read (No such file or directory): make one with (umask 077; ray get-auth-token --generate), and "
        "copy the file to every node; RAY_AUTH_MODE=disabled joins a cluster that has none",
        start_training(*joining, nodes.address, RAY_AUTH_TOKEN_PATH=str(open_to_all)): f"{open_to_all} holds Ray's "
        f"token, and others can read it (mode 0644): chmod 600 {open_to_all}",
        start_training(*joining, "127.0.0.1:9"): "ray_address 127.0.0.1:9: no answer in 15 s",
        start_training(*joining, nodes.address, PYTHONPATH=str(make_other_version(tmp_path))): f"ray_address "
        f"{nodes.address}: Version mismatch: The cluster was started with: Ray: {OWN} Python: {PYTHON} This "
        f"process on node {nodes.address.partition(':')[0]} was started with: Ray: 1.2.3 Python: {PYTHON}",
        start_training(*joining, "nonsense"): "ray_address must be auto or HOST:PORT, got 'nonsense'",
        start_training(*SHORT, "--ray_address", nodes.address): "--ray_address is only used with --engine ray",
    }
    assert [read_refusal(process) for process in expected] == list(expected.values())
    assert not (tmp_path / "CartPole-v1").exists()


def test_the_token_may_be_in_the_environment_and_a_file_of_it_may_not_be_empty(tmp_path, monkeypatch):
    monkeypatch.setenv("RAY_AUTH_MODE", "token")
    monkeypatch.setenv("RAY_AUTH_TOKEN_PATH", str(tmp_path / "token"))
    (tmp_path / "token").touch(0o600)
    monkeypatch.delenv("RAY_AUTH_TOKEN", raising=False)
    with pytest.raises(ValueError, match=rf"^engine ray needs a token, and {tmp_path}/token is empty: make one with "):
        require_token()
    (tmp_path / "token").write_bytes(b"\xff\n")
    require_token()
    monkeypatch.setenv("RAY_AUTH_TOKEN", secrets.token_hex(32))
    require_token()


def test_what_the_processor_can_do_is_part_of_what_a_node_is_like(monkeypatch):
    monkeypatch.setattr(ray_worker, "get_host_cpu_features", lambda: {"avx9": True})
    assert ray_worker.describe_node(())["cpu avx9"] == "True"


def test_a_policy_that_cannot_be_sent_is_refused_before_anything_starts(joined):
    joined.keep((1,))
    task = replace(make_task(), agent=Agent(Unsendable((2,), 2), "tanh"))
    with pytest.raises(ValueError, match=r"^the policy cannot be sent to workers: TypeError: cannot pickle a lock$"):
        make_ray_engine(joined, task)
    engine = make_ray_engine(joined, make_task())
    with pytest.raises(EngineError, match=r"^[A-Z]\w+ cannot be sent to the cluster: TypeError: Could not serialize"):
        engine.share(Unsendable((2,), 2))
    engine.close()


def test_a_first_node_that_differs_is_refused_unless_mixed_nodes_are_allowed(joined, monkeypatch):
    joined.keep((1,))
    ours = ray_worker.find_conditions()
    monkeypatch.setattr(ray_worker, "find_conditions", lambda: {**ours, "numpy": "1.0", "libc": "musl"})
    message = rf"node [\d.]+ differs: libc .* \(here musl\), numpy {np.__version__} \(here 1.0\); --allow_mixed_nodes"
    with monkeypatch.context() as without_time, pytest.raises(ValueError, match=message):
        without_time.setattr(ray_cluster, "FIRST_SECONDS", 0.0)  # however slow its answer is
        make_ray_engine(joined, make_task())
    assert collect_answers(make_ray_engine(joined, make_task(), allow_mixed_nodes=True), 4) == find_bits()


def test_a_node_with_another_copy_of_hebbes_that_joins_is_refused_in_one_line(nodes, tmp_path, monkeypatch):
    """Each node finds hebbes in its own PYTHONPATH, because the driver's folder and its script's have none."""
    nodes.keep(())
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    nodes.add(1)
    long = (*SHORT, "--generations", "100000", "--folder", tmp_path, "--engine", "ray", "--ray_address", nodes.address)
    training = start_training("hebbes", "train_static", *long, script="-m", cwd=tmp_path, stdout=subprocess.DEVNULL)
    assert wait_until(lambda: (find_run(tmp_path) / "metrics.csv").exists() or training.poll() is not None)
    changed = copy_sources(tmp_path / "changed", "statistics/__init__.py", "", "\n")
    monkeypatch.setenv("PYTHONPATH", str(changed))
    node = nodes.add(1)
    (guard := Timer(300, training.kill)).start()  # else the next line might wait for ever
    line = next((line for line in training.stderr if line.startswith("node ")), "")
    guard.cancel()
    training.kill()
    training.communicate()
    nodes.kill(node)
    assert re.fullmatch(
        r"node [\d.]+ differs: hebbes \w{12} \(here \w{12}\); --allow_mixed_nodes drops the promise of the same bits; "
        r"it is not used\n",
        line,
    )


def test_a_difference_names_what_differs():
    assert find_difference({"numpy": "2"}, {"numpy": "2"}) == ""
    assert find_difference({"cpu avx2": "True"}, {"cpu avx2": "False", "numpy": "2"}) == (
        "differs: cpu avx2 True (here False), numpy missing (here 2); --allow_mixed_nodes drops the promise of the "
        "same bits"
    )


def test_a_driver_that_is_told_to_stop_saves_what_it_has(nodes, tmp_path):
    """Ray has a handler of its own for this signal."""
    nodes.keep((1,))
    on_ray = ("--engine", "ray", "--ray_address", nodes.address)
    stopped = start_training(*SHORT, "--generations", "4000", "--folder", tmp_path, *on_ray)
    metrics = find_run(tmp_path) / "metrics.csv"
    assert wait_until(lambda: metrics.exists() and metrics.read_text().count("\n") > 2)
    stopped.terminate()
    output, _ = stopped.communicate()
    assert stopped.returncode == 128 + signal.SIGTERM and f"--resume {metrics.parent}" in output
    finish(start_training("--resume", metrics.parent, "--generations", metrics.read_text().count("\n")))


def test_a_driver_that_is_killed_leaves_no_worker_and_is_resumed(nodes, tmp_path):
    (node,) = nodes.keep((1,))
    on_ray = ("--engine", "ray", "--ray_address", nodes.address)
    killed = start_training(*SHORT, "--generations", "4000", "--folder", tmp_path / "ray", *on_ray)
    metrics = find_run(tmp_path / "ray") / "metrics.csv"
    assert wait_until(lambda: metrics.exists() and metrics.read_text().count("\n") > 3)
    killed.kill()
    killed.communicate()
    assert wait_until(lambda: not nodes.find_workers(node))
    goal = metrics.read_text().count("\n") + 2
    finish(start_training("--resume", metrics.parent, "--generations", goal))
    finish(start_training(*SHORT, "--generations", goal, "--folder", tmp_path / "alone", "--threads", "1"))
    assert read_weights(tmp_path / "ray") == read_weights(tmp_path / "alone")
