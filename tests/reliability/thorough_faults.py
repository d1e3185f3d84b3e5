"""Faults in real runs, each with its expected result; run by `make reliability`."""

import json

import pytest
from training_process import (
    IMPORT,
    TrainingProcess,
    check_files,
    find_differences,
    find_temporary_files,
    read_generation,
)

from hebbes.recording.metrics import read_metrics
from tests.files.damage import flip_last_bit

SCRIPTED = [
    *("--environment", "Scripted-v0", *IMPORT, "--policy", "linear", "--popsize", "8", "--test_episodes", "0"),
    *("--checkpoint_every", "1", "--eval_every", "2", "--eval_episodes", "2", "--chunk_size", "2"),
    *("--observation_normalization", "--optimizer", "adam", "--lr", "0.05"),
]
WORKERS = ["--engine", "workers", "--threads", "2"]
IN_PROCESS = ["--engine", "in_process", "--threads", "1"]
HANGS = [*WORKERS, "--import", "tests.scripted", "tests.reliability.impatient", "--episode_timeout", "0.3"]


def make_script_flags(**changes):
    settings = {"rewards": [0.0], "truncate_at": 5, "action_weight": 1.0, **changes}
    return ["--env_kwargs", json.dumps(settings)]


SOME = {"only_above": 0.5}
SURVIVED = {
    "simulator raises, in process": [*IN_PROCESS, *make_script_flags(raise_at=3, **SOME)],
    "simulator raises, in a worker": [*WORKERS, *make_script_flags(raise_at=3, **SOME)],
    "simulator ends its process": [*WORKERS, *make_script_flags(exit_at=3, **SOME)],
    "simulator hangs": [*HANGS, *make_script_flags(hang_at=3, **SOME)],
    "simulator hangs and holds the interpreter lock": [
        *HANGS,
        *make_script_flags(hang_at=3, hang_holds_lock=True, **SOME),
    ],
}
STOPPED = {
    "every observation NaN": (
        make_script_flags(nan_at=2),
        "generation 1: every member failed: non-finite observation",
    ),
    "every reward is too large": (
        make_script_flags(rewards=[10**39]),  # YAML takes 1e+308 for a text
        "generation 1: every member failed: non-finite reward",
    ),
    "every simulator raises": (
        make_script_flags(raise_at=2),
        "generation 1: every member failed: RuntimeError: scripted",
    ),
    "simulator cannot be made": (make_script_flags(raise_in="constructor"), "scripted failure in constructor"),
    "simulator cannot be stepped": (
        make_script_flags(raise_at=1),
        "fails in its first env step: RuntimeError",
    ),
    "simulator cannot begin": (make_script_flags(raise_in="reset"), "scripted failure in reset"),
    "learning rate 1e39": (["--lr", "1e39", *make_script_flags()], "the weights are no longer finite"),
    "sigma underflows": (
        ["--sigma_decay", "0.01", "--sigma_min", "0", *make_script_flags()],
        "no longer changes any float32 weight",
    ),
}


def run(arguments, folder):
    """Exit status and output of a finished run, and its folder."""
    place = [] if "--resume" in arguments else ["--folder", folder, "--run_name", "a", *SCRIPTED]
    process = TrainingProcess([*place, *arguments], folder / "output.txt")
    status = process.finish()
    assert not process.find_left_behind()
    return status, process.output, folder / "Scripted-v0" / "a"


@pytest.mark.parametrize("fault", SURVIVED)
def test_the_run_goes_on(fault, tmp_path, tell):
    status, said, folder = run(["--generations", "3", *SURVIVED[fault]], tmp_path)
    assert (status, read_generation(folder)) == (0, 3), said
    failed = read_metrics(folder / "metrics.csv")["failed_members"]
    assert 0 < failed.max() < 9, said
    assert " of 8 members" in said and " failed: " in said
    check_files(folder)
    tell(f"fault: {fault}: {failed.sum():.0f} members failed, the run went on", faults=1)


@pytest.mark.parametrize("fault", STOPPED)
def test_the_run_stops_with_its_last_good_generation_saved(fault, tmp_path, tell):
    flags, reason = STOPPED[fault]
    status, said, folder = run(["--generations", "100", *IN_PROCESS, *flags], tmp_path)
    if not folder.exists():  # detected before anything was written
        assert status == 2 and reason in said, said
        tell(f"fault: {fault}: refused with exit status 2", faults=1)
        return
    assert status == 1 and reason in said, said
    check_files(folder)
    again, said, _ = run(["--resume", folder, *IMPORT], tmp_path)
    assert again == 1 and reason in said, said
    tell(f"fault: {fault}: stopped with exit status 1 after generation {read_generation(folder)}, saved", faults=1)


def test_a_simulator_that_ends_the_program_fails_alone_after_a_resume_with_workers(tmp_path, tell):
    flags = ["--generations", "3", *make_script_flags(exit_at=3, **SOME)]
    status, said, folder = run([*IN_PROCESS, *flags], tmp_path)
    assert status == 3 and read_generation(folder) < 3, said
    status, said, _ = run(["--resume", folder, *IMPORT, *WORKERS], tmp_path)
    assert (status, read_generation(folder)) == (0, 3), said
    check_files(folder)
    tell("fault: simulator ends the program: resumed with workers, the run went on", faults=1)


def cut_short(path):
    path.write_bytes(path.read_bytes()[:-7])


def make_empty(path):
    path.write_bytes(b"")


DAMAGE = {
    "newest checkpoint, a bit flipped": (flip_last_bit, ["00000006.ckpt"]),
    "newest checkpoint cut short": (cut_short, ["00000006.ckpt"]),
    "newest two checkpoints empty": (make_empty, ["00000006.ckpt", "00000005.ckpt"]),
}


@pytest.mark.parametrize("fault", DAMAGE)
def test_a_damaged_checkpoint_is_passed_over(fault, tmp_path, tell):
    damage, names = DAMAGE[fault]
    (tmp_path / "whole").mkdir()
    status, said, whole = run([*IN_PROCESS, *make_script_flags(), "--generations", "9"], tmp_path / "whole")
    assert status == 0, said
    status, said, folder = run([*IN_PROCESS, *make_script_flags(), "--generations", "6"], tmp_path)
    assert status == 0, said
    for name in names:
        damage(folder / "checkpoint" / name)
    status, said, _ = run(["--resume", folder, *IMPORT, "--generations", "9"], tmp_path)
    assert status == 0 and all(f"{name}: " in said for name in names), said
    assert not find_temporary_files(folder)
    found = set(find_differences(folder, whole))
    tell(f"fault: {fault}: resumed from generation {6 - len(names)}, {'NOT ' * bool(found)}EQUAL", faults=1)
    assert not found
