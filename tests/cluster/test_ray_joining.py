"""Who is let into a cluster and who is not: each refusal is one line, with status 2, and comes soon."""

import os
import secrets
import shutil
import subprocess
import sys
import time
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pytest

from hebbes.execution import ray_cluster, ray_worker
from hebbes.execution.ray_cluster import find_difference
from hebbes.files.policy_file import load_policy
from tests.cluster.ray_engines import find_bits, make_ray_engine, wait_until
from tests.execution.test_engines import build_scripted_task, collect_answers

pytestmark = pytest.mark.ray
OWN, PYTHON = version("ray"), sys.version.split()[0]
ROOT = Path(__file__).parents[2]
RUN = ("--environment", "CartPole-v1", "--backend", "gymnasium", "--popsize", "8", "--generations", "4")
SHORT = (*RUN, "--test_episodes", "0", "--eval_episodes", "1", "--max_episode_steps", "20", "--run_name", "run")


def start_training(*arguments, **environment):
    return subprocess.Popen(
        [sys.executable, "train_static.py", *map(str, arguments)],
        cwd=ROOT,
        env={**os.environ, "GIT_DIR": os.devnull, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def read_refusal(process):
    """The only line of a program that is refused."""
    started = time.monotonic()
    output, errors = process.communicate(timeout=100)
    assert (process.returncode, output) == (2, ""), errors
    assert time.monotonic() - started < 60  # 30 s on a machine that does nothing else
    (line,) = errors.splitlines()
    return line.partition(": error: ")[2]


def make_other_version(folder):
    """A folder that makes Ray another version for programs that have it in their path."""
    (folder / "sitecustomize.py").write_text("import ray\nray.__version__ = '1.2.3'\n")
    return folder


def test_without_the_package_it_says_how_to_install_it(nodes, monkeypatch):
    monkeypatch.setattr(ray_cluster, "find_spec", lambda name: None)
    with pytest.raises(ValueError, match=r"not installed: pip install 'ray\[default\]~=2.60'"):
        make_ray_engine(nodes, build_scripted_task())


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


def test_a_cluster_without_a_free_cpu_is_refused(nodes):
    nodes.keep((1,))
    engine = make_ray_engine(nodes, build_scripted_task())
    engine._transport.start_worker()
    wait_until(lambda: not engine._transport._cluster.ray.available_resources().get("CPU"))
    with pytest.raises(ValueError, match=r"none of the cluster's 1 CPUs is free"):
        make_ray_engine(nodes, build_scripted_task())
    engine.close()


def test_a_node_that_differs_is_refused_unless_mixed_nodes_are_allowed(nodes, monkeypatch):
    nodes.keep((1,))
    ours = ray_worker.find_conditions()
    monkeypatch.setattr(ray_worker, "find_conditions", lambda: {**ours, "numpy": "1.0", "libc": "musl"})
    message = rf"node [\d.]+ differs: libc .* \(here musl\), numpy {np.__version__} \(here 1.0\); --allow_mixed_nodes"
    with pytest.raises(ValueError, match=message):
        make_ray_engine(nodes, build_scripted_task())
    assert collect_answers(make_ray_engine(nodes, build_scripted_task(), allow_mixed_nodes=True), 4) == find_bits()


def test_a_difference_names_what_differs():
    assert find_difference({"numpy": "2"}, {"numpy": "2"}) == ""
    assert find_difference({"cpu avx2": "True"}, {"cpu avx2": "False", "numpy": "2"}) == (
        "differs: cpu avx2 True (here False), numpy missing (here 2); --allow_mixed_nodes drops the promise of the "
        "same bits"
    )


def test_a_driver_that_is_killed_leaves_no_worker_and_is_resumed(nodes, tmp_path):
    (node,) = nodes.keep((1,))
    on_ray = ("--engine", "ray", "--ray_address", nodes.address)
    killed = start_training(*SHORT, "--generations", "4000", "--folder", tmp_path / "ray", *on_ray)
    metrics = tmp_path / "ray" / "CartPole-v1" / "run" / "metrics.csv"
    wait_until(lambda: metrics.exists() and metrics.read_text().count("\n") > 3)
    killed.kill()
    killed.communicate()
    wait_until(lambda: not nodes.find_workers(node))
    goal = metrics.read_text().count("\n") + 2
    resumed = start_training("--resume", metrics.parent, "--generations", goal)
    alone = start_training(*SHORT, "--generations", goal, "--folder", tmp_path / "alone", "--threads", "1")
    for process in (resumed, alone):
        _, errors = process.communicate(timeout=100)
        assert process.returncode == 0, errors
    found = [load_policy(tmp_path / each / "CartPole-v1" / "run" / "latest.dat") for each in ("ray", "alone")]
    assert found[0].weights.tobytes() == found[1].weights.tobytes()


JOB = """
import sys, ray
ray.init(address="auto", runtime_env={"working_dir": "."}, log_to_driver=False)
from hebbes.programs.commands import run_command
run_command("train_static")
"""


def test_a_job_with_a_flat_working_directory(nodes, tmp_path):
    nodes.keep((1,))
    flat = tmp_path / "flat"
    flat.mkdir()
    shutil.copytree(ROOT / "hebbes", flat / "hebbes", ignore=shutil.ignore_patterns("__pycache__"))
    (flat / "job.py").write_text(JOB)
    command = [sys.executable, "job.py", *SHORT, "--folder", str(tmp_path / "ray"), "--engine", "ray"]
    environment = {**os.environ, "RAY_ADDRESS": nodes.address, "GIT_DIR": os.devnull}
    done = subprocess.run(command, cwd=flat, env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    alone = start_training(*SHORT, "--folder", tmp_path / "alone", "--threads", "1")
    assert alone.wait(100) == 0
    found = [load_policy(tmp_path / each / "CartPole-v1" / "run" / "latest.dat") for each in ("ray", "alone")]
    assert found[0].weights.tobytes() == found[1].weights.tobytes()
