"""Runs of several seeds that were stopped go on with all remaining seeds, by the command that they printed."""

import shlex
import signal

import pytest
from training_process import TrainingProcess, find_differences, find_temporary_files, wait_for_generation

pytestmark = pytest.mark.slow

THREE = [
    *("--environment", "CartPole-v1", "--popsize", "8", "--max_episode_steps", "50", "--threads", "1"),
    *("--eval_every", "5", "--eval_episodes", "2", "--test_episodes", "2", "--seed", "7", "--seeds", "3"),
    *("--generations", "60"),
]


def test_a_signal_in_the_second_of_three(tmp_path):
    process = TrainingProcess([*THREE, "--folder", tmp_path, "--run_name", "whole"], tmp_path / "output.txt")
    assert process.finish() == 0, process.output
    whole, top = tmp_path / "CartPole-v1" / "whole", tmp_path / "CartPole-v1" / "a"
    process = TrainingProcess([*THREE, "--folder", tmp_path, "--run_name", "a"], tmp_path / "output.txt")
    assert wait_for_generation(process, top / "seed8", 20), process.output
    process.send(signal.SIGINT)
    assert process.finish() == 130, process.output
    assert sorted(path.name for path in top.iterdir()) == ["config.yaml", "seed7", "seed8"]
    last = process.output.rstrip().splitlines()[-1]
    assert last.startswith("to go on        python ")
    process = TrainingProcess(shlex.split(last)[5:], tmp_path / "output.txt")
    assert process.finish() == 0, process.output
    assert not find_temporary_files(tmp_path)
    for name in ("seed7", "seed8", "seed9"):
        assert find_differences(top / name, whole / name) == []
        assert (top / name / "test.json").read_bytes() == (whole / name / "test.json").read_bytes()
    assert process.output.count("nothing to do") == 1
    assert any(line.startswith("3 runs ") for line in process.output.splitlines())
