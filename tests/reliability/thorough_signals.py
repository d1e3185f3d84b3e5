"""Runs that are told to stop at random moments go on as they say; run by `make reliability`."""

import shlex
import signal
import time

import numpy as np
import pytest
from killed_runs import flags
from training_process import (
    TrainingProcess,
    check_files,
    differences,
    generations_in,
    temporary_files,
    wait_for_generation,
)

STOPS = 8
GO_ON = "to go on        python "


def last_line(process):
    return process.output.rstrip().splitlines()[-1]


@pytest.mark.parametrize("environment", ["CartPole-v1", "CarRacing-v3", "Pendulum-v1"])
@pytest.mark.parametrize("twice", [False, True], ids=["once", "twice"])
def test_stops_at_random_moments(environment, twice, tmp_path, tell):
    rng, stops, slowest = np.random.default_rng(5), 0, 0.0
    whole, folder = tmp_path / environment / "whole", tmp_path / environment / "stopped"
    begin = [*flags(environment), "--folder", tmp_path, "--run_name"]
    process = TrainingProcess([*begin, whole.name], tmp_path / "output.txt")
    assert process.finish() == 0, process.output
    arguments, total = [*begin, folder.name], generations_in(whole)
    for target in np.sort(rng.integers(1, total - 2, STOPS)):
        process = TrainingProcess(arguments, tmp_path / "output.txt")
        wait_for_generation(process, folder, min(max(int(target), generations_in(folder) + 1), total - 1))
        number = signal.SIGINT if rng.random() < 0.5 else signal.SIGTERM
        time.sleep(rng.uniform(0, 0.2))
        sent = time.monotonic()
        process.send(number)
        if twice:
            time.sleep(rng.uniform(0.05, 0.3))
            process.send(number)
        status = process.finish(30)
        slowest = max(slowest, time.monotonic() - sent)
        # A second signal may come while the interpreter takes itself down; a shell says 128 + number for that, too.
        assert status in ((0, 128 + number, -number) if twice else (0, 128 + number)), process.output
        assert "Traceback" not in process.output
        assert not process.left_behind()
        check_files(folder)
        stops += status != 0
        if status and not twice:
            assert last_line(process).startswith(GO_ON)
            arguments = shlex.split(last_line(process).removeprefix(GO_ON))[1:]
        else:
            arguments = ["--resume", str(folder)]
    process = TrainingProcess(arguments, tmp_path / "output.txt")
    assert process.finish() == 0, process.output
    assert not temporary_files(folder)
    found = differences(folder, whole)
    tell(
        f"{environment}: {stops} {'double ' if twice else ''}signals, "
        f"slowest end {slowest:.1f} s, {'NOT ' * bool(found)}EQUAL",
        signals=stops * (2 if twice else 1),
    )
    assert not found
