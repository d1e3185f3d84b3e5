"""A run that is told to stop saves what it has, says how to go on, leaves no process, and exits with 128 + signal."""

import os
import shlex
import signal
import subprocess
import sys
import time

import pytest

from hebbes.files.checkpoint import load_newest_checkpoint
from hebbes.files.policy_file import read_policy_file
from hebbes.programs.exit_status import SAME_SIGNAL_SECONDS
from hebbes.recording.metrics import read_metrics
from tests.python_process import ROOT, run_python

SCRIPTED = ["--environment", "Scripted-v0", "--import", "tests.scripted"]
TINY = ["--threads", "2", "--popsize", "8", "--test_episodes", "0", "--run_name", "a"]
HANGING = ["--env_kwargs", "{truncate_at: 50, hang_at: 9}"]


@pytest.fixture(autouse=True)
def hear_sighup():
    """SIGHUP is not ignored, even if whoever runs the tests ignores it: programs inherit that."""
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


def start(*flags, prefix=(), stderr=subprocess.PIPE):
    command = [*prefix, sys.executable, "train_static.py", *map(str, flags)]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=stderr, text=True, start_new_session=True)


def start_and_hang(*flags):
    """A run, all of whose output comes in one pipe, once an environment says that it hangs."""
    process = start(*SCRIPTED, *HANGING, *TINY, *flags, stderr=subprocess.STDOUT)
    read_until(process, "hanging in process")
    return process


def read_until(process, beginning):
    """Reads what the run prints until a line begins so, however long a loaded machine takes to start."""
    said = []
    while not (line := process.stdout.readline()).startswith(beginning):
        said.append(line)
        assert line, said


def wait_for_generation(generation, metrics, process):
    """Waits until the run has logged that many."""
    while not (metrics.exists() and metrics.read_text().count("\n") > generation):
        assert process.poll() is None, process.stderr.read()
        time.sleep(0.05)


def session_is_empty(session, patience=10):
    """Whether every process that the run started has ended within so many seconds, zombies apart."""
    for _ in range(10 * patience + 1):
        found = subprocess.run(["ps", "-o", "stat=", "-s", str(session)], capture_output=True, text=True).stdout.split()
        if all(state.startswith("Z") for state in found):
            return True
        time.sleep(0.1)
    return False


UNHEARD = """
import os, signal
from hebbes.programs.exit_status import end_cleanly_on_signals
with end_cleanly_on_signals():
    try:
        os.kill(os.getpid(), signal.SIGINT)
    except (OSError, SystemExit if TWICE else OSError):
        os.kill(os.getpid(), signal.SIGTERM)
    print("went on")
"""
"""A program that handles exceptions, as one of several seeds does."""


@pytest.mark.parametrize(("twice", "status"), [(False, 130), (True, 143)])
def test_a_signal_ends_a_program_whose_errors_nobody_reads_any_more(twice, status):
    read, write = os.pipe()
    os.close(read)  # as by `2>&1 | tee`, which the same Ctrl-C has ended
    code = UNHEARD.replace("TWICE", str(twice))
    done = run_python("-c", code, stderr=write, status=status)
    os.close(write)
    assert done.stdout == ""


@pytest.mark.slow
def test_a_run_under_nohup_outlives_its_terminal(tmp_path):
    flags = [*SCRIPTED, *TINY, "--env_kwargs", "{truncate_at: 50}", "--generations", 1000000, "--folder", tmp_path]
    process = start(*flags, prefix=["nohup"])
    metrics = tmp_path / "Scripted-v0" / "a" / "metrics.csv"
    wait_for_generation(5, metrics, process)
    process.send_signal(signal.SIGHUP)
    wait_for_generation(metrics.read_text().count("\n") + 5, metrics, process)
    process.terminate()
    process.communicate(timeout=300)
    assert process.returncode == 128 + signal.SIGTERM


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("engine", ["in_process", "workers"])
def test_a_signal_ends_the_run_cleanly(number, engine, tmp_path):
    endless = ["--generations", "1000000", "--checkpoint_every", "1000000", "--eval_every", "1000000"]
    script = ["--env_kwargs", "{truncate_at: 50}", "--engine", engine]
    process = start(*SCRIPTED, *script, *TINY, *endless, "--folder", tmp_path)
    metrics = tmp_path / "Scripted-v0" / "a" / "metrics.csv"
    wait_for_generation(5, metrics, process)
    process.send_signal(number)
    time.sleep(0.05)
    os.killpg(process.pid, number)  # as a terminal does; `timeout` does both; the workers leave it to the run
    out, err = process.communicate(timeout=300)  # the pipes close when no worker holds them any more
    assert process.returncode == 128 + number
    assert session_is_empty(process.pid)
    assert "Traceback" not in err and "worker died" not in err
    assert str(metrics) in out
    generation = read_policy_file(metrics.with_name("latest.dat"), ["tests.scripted"]).provenance["generation"]
    assert generation >= 4  # the fifth is dropped if the signal comes between its row and the copy of its state
    last = out.splitlines()[-1]
    assert last.startswith("to go on        python train_static.py --resume ")
    if number != signal.SIGTERM:
        return  # one of them goes on, which takes a while
    resumed = start(*shlex.split(last)[5:], "--generations", generation + 2)
    assert resumed.wait(300) == 0, resumed.stderr.read()
    assert read_metrics(metrics)["generation"].tolist() == list(range(1, generation + 3))


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["in_process", "workers"])
def test_a_second_signal_stops_a_run_that_hangs_at_once(engine, tmp_path):
    process = start_and_hang("--engine", engine, "--folder", tmp_path)
    process.send_signal(signal.SIGINT)
    read_until(process, "stopping")
    time.sleep(SAME_SIGNAL_SECONDS)
    process.send_signal(signal.SIGINT)
    assert process.wait(300) == 130  # the env step takes for ever
    process.communicate(timeout=300)
    assert session_is_empty(process.pid)
    saved, damaged = load_newest_checkpoint(tmp_path / "Scripted-v0" / "a" / "checkpoint")
    assert (saved.progress.units, damaged) == (0, [])


@pytest.mark.slow
def test_a_killed_run_takes_its_workers_along(tmp_path):
    process = start_and_hang("--engine", "workers", "--folder", tmp_path)
    assert not session_is_empty(process.pid, patience=0)
    process.kill()
    process.communicate(timeout=300)
    assert session_is_empty(process.pid)


PATIENT = """
import os, time
import gymnasium
from matplotlib.figure import Figure
from tests.scripted import ScriptedGymnasiumEnv
def wait(*_, **__):
    open("WAITING", "w").close()
    time.sleep(1000)
class Patient(ScriptedGymnasiumEnv):
    def reset(self, **arguments):
        return wait() if "PHASE" == "preparation" else super().reset(**arguments)
    def step(self, action):
        return wait() if "PHASE" == "test" and os.path.exists("CURVE") else super().step(action)
gymnasium.register("Patient-v0", entry_point=Patient, kwargs={"truncate_at": 5})
if "PHASE" == "drawing":
    Figure.savefig = wait
"""
"""A module that waits in a phase of a run."""


@pytest.mark.slow
def test_a_finished_run_that_waits_for_a_users_thread_can_be_stopped(tmp_path, monkeypatch):
    code = "import threading, time\nthreading.Thread(target=time.sleep, args=(600,)).start()\n"
    (tmp_path / "leaves_a_thread.py").write_text(code)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    flags = ["--environment", "CartPole-v1", "--generations", "1", "--folder", tmp_path, "--import", "leaves_a_thread"]
    process = start(*flags, *TINY)
    read_until(process, "learning curve")
    time.sleep(2)  # closing takes less, and must not be interrupted
    assert process.poll() is None
    process.terminate()
    assert process.wait(300) == -signal.SIGTERM


@pytest.mark.slow
@pytest.mark.parametrize("phase", ["preparation", "drawing", "test"])
def test_ctrl_c_before_and_after_the_training(phase, tmp_path, monkeypatch):
    folder, waiting = tmp_path / "Patient-v0" / "a", tmp_path / "waiting"
    module = PATIENT.replace("PHASE", phase).replace("CURVE", str(folder / "learning_curve.png"))
    (tmp_path / "patient.py").write_text(module.replace("WAITING", str(waiting)))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    flags = ["--environment", "Patient-v0", "--import", "patient", "--policy", "linear", "--threads", 1]
    flags += ["--popsize", 4, "--generations", 2, "--test_episodes", 2, "--folder", tmp_path, "--run_name", "a"]
    process = start(*flags)
    while not waiting.exists():
        assert process.poll() is None, process.stderr.read()
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=300)
    assert (process.returncode, err) == (130, "stopping; again to stop at once\n")
    assert not [*tmp_path.rglob("*.tmp")]
    if phase == "preparation":
        assert out == "" and not folder.parent.exists()
        return
    assert out.splitlines()[-1].startswith("to go on        python train_static.py --resume ")
    assert load_newest_checkpoint(folder / "checkpoint")[0].progress.units == 2
    assert (folder / "learning_curve.png").exists() == (phase == "test")
    assert not (folder / "test.json").exists()


SLOW_IMPORT = """
import sys, time
class Wait:
    def find_spec(self, name, path=None, target=None):
        if name == "numpy.linalg":
            print("loading", flush=True)
            time.sleep(1000)
sys.meta_path.insert(0, Wait())
"""
"""A `sitecustomize.py` by which the modules of a program are never all loaded."""


@pytest.mark.slow
@pytest.mark.parametrize("script", sorted(path.name for path in ROOT.glob("*.py")))
def test_ctrl_c_while_modules_are_loaded_ends_in_silence(script, tmp_path):
    (tmp_path / "sitecustomize.py").write_text(SLOW_IMPORT)
    command, environment = [sys.executable, script, "--help"], {**os.environ, "PYTHONPATH": str(tmp_path)}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    process = subprocess.Popen(command, cwd=ROOT, env=environment, **pipes)
    assert process.stdout.readline() == "loading\n", process.stderr.read()
    process.send_signal(signal.SIGINT)
    assert process.communicate(timeout=300) == ("", "")
    assert process.returncode == -signal.SIGINT
