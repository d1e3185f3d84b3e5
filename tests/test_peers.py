"""`benchmarks/peers`: the clock, what is kept and repeated, the table by hand, and every peer for some seconds."""

import importlib
import json
import os
import signal
import subprocess
import sys
from contextlib import nullcontext
from importlib.util import find_spec

import gymnasium
import numpy as np
import pytest

from benchmarks.peers.__main__ import PEERS, run, show
from benchmarks.peers.measure import FIRST_SEED, Evaluations, Plan, TimeIsOver, play
from benchmarks.peers.report import format_results
from hebbes.files.folder_lock import lock_folder
from tests.python_process import ROOT
from tests.waiting import wait_until

FAKE = """
import os, time
from pathlib import Path
PACKAGES = ()
def find_settings(environment):
    return {"speed": 10}
def train(environment, seed, cores, keep):
    if seed == 1 and "BREAKS" in os.environ:
        raise RuntimeError("broken")
    if seed == 1 and "WAITS" in os.environ:
        Path(os.environ["WAITS"]).write_text(str(os.getpid()))
        time.sleep(600)
    env_steps = 0
    while True:
        keep(env_steps, lambda observation: 0)
        env_steps += 10
        time.sleep(0.01)
"""
HARNESS = """
from benchmarks.peers import __main__ as harness
harness.PEERS = {"fake": "json", "lacking": "no_such_package"}
harness.main()
"""


def test_the_clock_is_stopped_during_evaluations():
    now, evaluated = [1000.0], []

    def evaluate(act):
        now[0] += 500
        evaluated.append(act(np.zeros(1)))
        return 7.0

    evaluations = Evaluations(100, 10, evaluate, clock=lambda: now[0])
    for number in range(34):
        now[0] += 3
        with pytest.raises(TimeIsOver) if number == 33 else nullcontext():
            evaluations.keep(10 * number, lambda observation, number=number: number)
    # The first multiples of 3 at or after 0, 10, 20, ... 100, and after one minute, which 60 is too.
    seconds = [3, 12, 21, 30, 42, 51, 60, 72, 81, 90, 102]
    assert evaluations.points == [(each, 10 * (each // 3 - 1), 7.0) for each in seconds]
    assert evaluated == [each // 3 - 1 for each in seconds]


def test_long_runs_are_evaluated_after_one_five_and_fifteen_minutes_too():
    now = [0.0]
    evaluations = Evaluations(2000, 10, lambda act: 0.0, clock=lambda: now[0])
    while now[0] < 2000:
        now[0] += 20
        with pytest.raises(TimeIsOver) if now[0] == 2000 else nullcontext():
            evaluations.keep(0, lambda observation: 0)
    assert [point[0] for point in evaluations.points] == sorted({20, 60, 300, 900, *range(200, 2001, 200)})


def test_an_evaluation_has_fixed_start_seeds():
    seeds = []

    class Counting(gymnasium.Env):
        def reset(self, *, seed=None, options=None):
            seeds.append(seed)
            self.left = seed - FIRST_SEED + 1
            return np.zeros(1), {}

        def step(self, action):
            self.left -= 1
            return np.zeros(1), action, self.left == 0, False, {}

    assert play(Counting(), lambda observation: 2.0) == 2 * 5.5
    assert seeds == [FIRST_SEED + number for number in range(10)]


def make_result(*points, seconds=120):
    return {"plan": {"seconds": seconds}, "points": points}


def test_the_table_by_hand():
    first = make_result((0, 0, 0.0), (60, 6000, 100.0), (120, 12000, 300.0))
    second = make_result((30, 1000, 100.0), (90, 5000, 300.0), (130, 13000, 500.0))
    late = make_result((0, 0, 0.0), (200, 1000, 100.0))
    lines = format_results({"fast": [first, second], "late": [late, late], "none": []}, 300).splitlines()
    cells = [" ".join(line.split()) for line in lines]
    assert cells[0] == "peer seeds env steps/s return, 1 min return, 2 min minutes to 300"
    # After 1 min: 100, and half-way between 100 and 300. After 2 min: 300, and three quarters between 300 and 500.
    assert cells[1] == "fast 2 100 [100, 100] 150 [100, 200] 375 [300, 450] 2.00, 2 of 2"
    assert cells[2] == "late 2 5.00 [5.00, 5.00] 30.0 [30.0, 30.0] 60.0 [60.0, 60.0] -, 0 of 2"
    assert len(lines) == 4


def test_results_of_different_machines_are_said_to_be_such(tmp_path, capsys):
    plans = [Plan("ours", "CartPole-v1", seed, 120, 1, 10) for seed in (0, 1)]
    for plan, cpu in zip(plans, ("a", "b"), strict=True):
        result = {**make_result((0, 0, 0.0), (120, 6000, 100.0)), "conditions": {"cpu": cpu, "hebbes": "1"}}
        (tmp_path / plan.file_name).write_text(json.dumps(result))
    show(plans, "CartPole-v1", tmp_path)
    assert [line for line in capsys.readouterr().out.splitlines() if "different" in line] == [
        "measured with different cpu: a, b"
    ]


@pytest.fixture
def harness(tmp_path):
    """A function that starts the program with a fake peer, whose module lies in another part of the package."""
    place = tmp_path / "benchmarks" / "peers"
    place.mkdir(parents=True)
    (place / "fake.py").write_text(FAKE)

    signal.signal(signal.SIGHUP, signal.SIG_DFL)  # programs inherit it if whoever runs the tests ignores it

    def start(*flags, **variables):
        command = [sys.executable, "-c", HARNESS, "--environment", "CartPole-v1", "--cores", "1", "--minutes", "0.005"]
        command += ["--results", tmp_path / "results", "--seeds", "2", *flags]
        env = {**os.environ, "PYTHONPATH": str(tmp_path), **variables}
        return subprocess.Popen(command, cwd=ROOT, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    return start


def find_results(tmp_path):
    return sorted(path.name for path in (tmp_path / "results").glob("*.json"))


@pytest.mark.slow
def test_what_is_there_is_not_measured_again(tmp_path, harness):
    broken = harness(BREAKS="1")
    said, _ = broken.communicate(timeout=300)
    assert broken.returncode == 1, said
    lines = said.splitlines()
    assert lines[0] == ("lacking is left out: no_such_package is not installed, see benchmarks/peers/requirements.txt")
    names = [f"CartPole-v1-fake-0.3s-1cores-10evaluations-seed{seed}.json" for seed in (0, 1)]
    assert find_results(tmp_path) == names[:1]
    assert lines[1] == "2 of 2 runs are left, 0.00017 hours and the evaluations"
    assert lines[4].startswith("failed ") and names[1] in lines[4]
    assert "RuntimeError: broken" in (tmp_path / "results" / names[1]).with_suffix(".log").read_text()
    before = (tmp_path / "results" / names[0]).read_bytes()
    mended = harness()
    said, _ = mended.communicate(timeout=300)
    assert said.splitlines()[1].startswith("1 of 2 runs are left")
    assert mended.returncode == 0 and names[0] not in said and names[1] in said
    assert find_results(tmp_path) == names and (tmp_path / "results" / names[0]).read_bytes() == before
    result = json.loads(before)
    plan = {"peer": "fake", "environment": "CartPole-v1", "seed": 0, "seconds": 0.3, "cores": 1, "evaluations": 10}
    assert result["plan"] == plan
    assert result["settings"] == {"speed": 10} and "gymnasium" in result["conditions"]
    seconds, env_steps, returns = np.array(result["points"]).T
    assert len(seconds) >= 2 and seconds[-1] >= 0.3 and (np.diff(env_steps) > 0).all()
    assert set(returns) == {returns[0]} and 8 < returns[0] < 11  # a pole that is always pushed to the left
    assert said.splitlines()[-2].split()[:2] == ["fake", "2"] and said.splitlines()[-2].endswith("0 of 2")
    assert (tmp_path / "results" / "CartPole-v1.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_stop_loses_one_run_and_leaves_no_process(tmp_path, harness, number):
    pid_file = tmp_path / "pid"
    stopped = harness(WAITS=str(pid_file))
    assert wait_until(lambda: pid_file.exists() and pid_file.read_text())
    stopped.send_signal(number)
    said, _ = stopped.communicate(timeout=300)
    assert stopped.returncode == 128 + number and "Traceback" not in said
    assert find_results(tmp_path) == ["CartPole-v1-fake-0.3s-1cores-10evaluations-seed0.json"]
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid_file.read_text()), 0)


@pytest.mark.slow
def test_a_run_whose_program_was_killed_keeps_others_out_until_it_ends(tmp_path, harness):
    pid_file = tmp_path / "pid"
    killed = harness(WAITS=str(pid_file))
    assert wait_until(lambda: pid_file.exists() and pid_file.read_text())
    killed.kill()
    killed.wait()
    second = harness()
    said, _ = second.communicate(timeout=300)
    assert second.returncode == 2 and said.splitlines()[-1].endswith("results is in use by another process")
    os.killpg(int(pid_file.read_text()), signal.SIGKILL)
    assert harness().wait(timeout=300) == 0


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (("--cores", "0"), "--cores must be in"),
        (("--minutes", "nan"), "--minutes > 0"),
        (("--environment", "Hopper"), "invalid choice: 'Hopper'"),
    ],
)
def test_bad_arguments_are_refused(harness, flags, said):
    refused = harness(*flags)
    text, _ = refused.communicate(timeout=300)
    assert refused.returncode == 2 and said in text.splitlines()[-1]


def test_the_ranks_and_sizes_of_es_torch_by_hand():
    es_torch = import_peer("es_torch")
    assert es_torch.find_settings("CarRacing-v3")["hidden_sizes"] == [128, 64]
    assert es_torch.find_settings("CartPole-v1")["hidden_sizes"] == [64, 64]
    assert es_torch.rank(np.array([3.0, 1.0, 1.0, 9.0, -4.0])).tolist() == [0.25, -0.125, -0.125, 0.5, -0.5]


@pytest.mark.slow
def test_our_policy_sees_and_acts_as_in_its_own_evaluation(tmp_path):
    from benchmarks.peers import ours
    from hebbes.evaluation.loaded_policy import Session
    from hebbes.evaluation.play import make_evaluation_spec
    from hebbes.files.policy_file import SavedPolicy
    from hebbes.training.assemble_run import assemble_run
    from hebbes.wrappers.resize import Resize

    run = assemble_run(ours.make_config("CarRacing-v3", threads=1, seed=3), tmp_path)
    try:
        weights, buffers = run.trainer.policy
        spec, agent = make_evaluation_spec(run.task.environment), run.task.agent
        env = gymnasium.make("CarRacing-v3")
        session = Session(SavedPolicy(agent.policy, "cnn", weights, buffers, agent.action_head, spec, {}), 0, 0)
        act = ours.make_act(run, env)
        for seed in range(2):
            env.observation_space.seed(seed)
            image = env.observation_space.sample()
            small = Resize(ours.OneObservation(env), size=(84, 84)).transform(image[np.newaxis])[0]
            assert np.array_equal(act(image), session.act(small / np.float32(255)))
    finally:
        run.close()


def import_peer(name):
    if find_spec(PEERS[name]) is None:
        pytest.skip("benchmarks/peers/requirements.txt is not installed")
    return importlib.import_module(f"benchmarks.peers.{name}")


@pytest.mark.parametrize("name", PEERS)
def test_settings_are_json_values_for_every_environment(name):
    peer = import_peer(name)
    for environment in ("HalfCheetah-v5", "Hopper-v5", "CartPole-v1", "CarRacing-v3"):
        assert json.loads(json.dumps(peer.find_settings(environment)))


@pytest.mark.slow
@pytest.mark.parametrize("environment", ["CartPole-v1", "Hopper-v5"])
@pytest.mark.parametrize("name", PEERS)
def test_every_peer_trains(tmp_path, name, environment):
    import_peer(name)
    lock = lock_folder(tmp_path)
    for seconds in (2.0, 8.0, 32.0):  # on a busy machine some of them take a while to start
        path = tmp_path / f"{seconds}.json"
        plan = Plan(name, environment, 0, seconds, min(2, len(os.sched_getaffinity(0))), 10)
        assert run(plan, path, lock), path.with_suffix(".log").read_text()
        result = json.loads(path.read_text())
        assert Plan(**result["plan"]) == plan
        points = np.array(result["points"])
        assert (np.diff(points[:, :2], axis=0) > 0).all() and np.isfinite(points).all() and points[-1, 0] >= seconds
        if points[-1, 1]:
            return
    pytest.fail("no env step")
