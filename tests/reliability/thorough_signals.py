"""Runs stopped by signals at random moments are resumed by the command that they printed; run by `make reliability`."""

import shlex
import signal
import time

import numpy as np
import pytest
from killed_runs import make_flags
from training_process import (
    TrainingProcess,
    check_files,
    find_differences,
    find_temporary_files,
    read_generation,
    wait_for_generation,
)

from hebbes.programs.exit_status import SAME_SIGNAL_SECONDS

STOPS = 8
RESUME_ADVICE = "to go on        python "


def read_last_line(process):
    return process.output.rstrip().splitlines()[-1]


@pytest.mark.parametrize("environment", ["CartPole-v1", "CarRacing-v3", "Pendulum-v1"])
@pytest.mark.parametrize("twice", [False, True], ids=["once", "twice"])
def test_stops_at_random_moments(environment, twice, tmp_path, tell):
    rng, stops, slowest = np.random.default_rng(5), 0, 0.0
    whole, folder = tmp_path / environment / "whole", tmp_path / environment / "stopped"
    begin = [*make_flags(environment), "--folder", tmp_path, "--run_name"]
    process = TrainingProcess([*begin, whole.name], tmp_path / "output.txt")
    assert process.finish() == 0, process.output
    arguments, total = [*begin, folder.name], read_generation(whole)
    for target in np.sort(rng.integers(1, total - 2, STOPS)):
        process = TrainingProcess(arguments, tmp_path / "output.txt")
        wait_for_generation(process, folder, min(max(int(target), read_generation(folder) + 1), total - 1))
        number = signal.SIGINT if rng.random() < 0.5 else signal.SIGTERM
        time.sleep(rng.uniform(0, 0.2))
        sent = time.monotonic()
        process.send(number)
        if twice:
            time.sleep(SAME_SIGNAL_SECONDS + rng.uniform(0, 0.3))
            process.send(number)
        status = process.finish(30)
        slowest = max(slowest, time.monotonic() - sent)
        # A second signal may arrive while the interpreter shuts down. A shell reports 128 + number for that too.
        assert status in ((0, 128 + number, -number) if twice else (0, 128 + number)), process.output
        assert "Traceback" not in process.output
        assert not process.find_left_behind()
        check_files(folder)
        stops += status != 0
        if status and not twice:
            assert read_last_line(process).startswith(RESUME_ADVICE)
            arguments = shlex.split(read_last_line(process).removeprefix(RESUME_ADVICE))[1:]
        else:
            arguments = ["--resume", str(folder)]
    process = TrainingProcess(arguments, tmp_path / "output.txt")
    assert process.finish() == 0, process.output
    assert not find_temporary_files(folder)
    assert stops >= STOPS // 2
    found = find_differences(folder, whole)
    tell(
        f"{environment}: {stops} {'double ' if twice else ''}signals, "
        f"slowest end {slowest:.1f} s, {'NOT ' * bool(found)}EQUAL",
        signals=stops * (2 if twice else 1),
    )
    assert not found
