"""Sweeps by several processes, one of which is killed: every trial ends once, and none is lost."""

import signal
import subprocess
import sys

import pytest

from hebbes.programs.sweeps.study import is_busy
from hebbes.recording.metrics import read_metrics
from hebbes.training.run_status import read_status
from tests.programs.sweeps import DONE, make_arguments, open_sweep
from tests.python_process import ROOT
from tests.reliability.training_process import PATIENCE, check_files, read_generation
from tests.waiting import wait_until

TRIALS = 20


@pytest.fixture
def start(tmp_path):
    """A function: a process of the sweep, which is killed after the test if it still runs."""
    processes = []

    def begin(**changes):
        arguments = make_arguments(tmp_path, trials=TRIALS, max_env_steps=40_000, **changes)
        with (tmp_path / f"output{len(processes)}.txt").open("wb") as output:
            command = [sys.executable, "-m", "hebbes", "sweep", *arguments]
            processes.append(subprocess.Popen(command, cwd=ROOT, stdout=output, stderr=subprocess.STDOUT))
        return processes[-1]

    yield begin
    for each in processes:
        each.kill()
        each.wait()


@pytest.mark.slow
def test_a_sweep_survives_the_kill_of_one_of_two_processes(tmp_path, start):
    top = tmp_path / "CartPole-v1" / "sweeps" / "openai_es"

    def find_busy():
        return [each for each in top.glob("trial*") if is_busy(each) and read_generation(each) > 0]

    killed, other = start(), start()
    assert wait_until(lambda: len(list(top.glob("trial*"))) >= 2 and len(find_busy()) == 2, PATIENCE)
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    third = start()
    assert (other.wait(5 * PATIENCE), third.wait(5 * PATIENCE)) == (0, 0)

    study = open_sweep(tmp_path, trials=TRIALS, max_env_steps=40_000)[-1]
    assert [each.number for each in study.trials] == [*range(TRIALS)]
    assert all(each.state in DONE for each in study.trials)
    assert {each.name for each in top.glob("trial*")} == {f"trial{number}" for number in range(TRIALS)}
    begun = []
    for each in study.trials:
        folder = study.find_trial_folder(each.number)
        check_files(folder)
        generations = read_metrics(folder / "metrics.csv")["generation"].tolist()
        assert generations == [*range(1, len(generations) + 1)]
        assert read_status(folder).state in ("ended", "stopped")
        begun.append((folder / "command.txt").read_text().count("hebbes sweep "))
    # the trial that lost its process goes on in another one, unless it had just been told as pruned
    assert sorted(begun) in ([1] * TRIALS, [*[1] * (TRIALS - 1), 2])
    assert len(study.results) == 4
    outputs = [(tmp_path / f"output{number}.txt").read_text() for number in range(3)]
    told = [line.split()[1] for text in outputs for line in text.splitlines() if line.startswith("trial ")]
    assert len(told) == len(set(told)) >= TRIALS - 1
    assert (top / "best.yaml").exists()
