"""The program `runs` on real runs in every state."""

import json
import os
import pty
import select
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from hebbes.files.folder_lock import is_locked, lock_folder
from hebbes.programs import list_runs
from hebbes.programs.list_runs import RunsConfig, find_listed
from hebbes.programs.reports.run_sections import group_runs, read_runs
from hebbes.training.prepare import prepare
from hebbes.training.run import execute
from hebbes.training.run_status import read_status
from tests.files.damage import flip_last_bit
from tests.programs.commands import call_command, run_command
from tests.python_process import ROOT, run_python
from tests.training.scripted_runs import make_scripted_config, resume, train

LARGE = ("numba", "torch", "scipy", "gymnasium", "envpool", "matplotlib")


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Runs that have ended and stopped, and one with damaged checkpoints."""
    top = tmp_path_factory.mktemp("weights")
    for name in ("ended", "damaged"):
        train(make_scripted_config(top, run_name=name, generations=2))
    cem = make_scripted_config(top, run_name="stopped", seed=4, strategy="cem", population_size=6, generations=8)
    (run,) = prepare(cem)
    execute(run, on_row=lambda row: row["generation"] == 2)
    for path in (top / "Scripted-v0" / "damaged" / "checkpoint").iterdir():
        path.write_bytes(path.read_bytes()[:-5])
    return top


def start(*arguments, **options):
    return subprocess.Popen(
        [sys.executable, "-m", "hebbes", "runs", *map(str, arguments)], cwd=ROOT, text=True, **options
    )


def read_soon(descriptor):
    """What comes next; fails after a minute without anything."""
    assert select.select([descriptor], [], [], 60)[0]
    return os.read(descriptor, 4096)


def find(top, **options):
    return {each.folder.name: each for each in find_listed(RunsConfig(folder=str(top), **options))}


def test_each_run_has_a_row_with_its_state(made, capfd):
    done = run_command("runs", made)
    lines = done.stdout.splitlines()
    assert done.returncode == 0 and lines[-1] == "3 runs: 1 ended, 1 stopped, 1 damaged"
    damaged, ended, stopped = (line.split() for line in lines[1:4])
    assert damaged[:2] == ["damaged", "Scripted-v0/damaged:"] and "truncated or damaged" in lines[1]
    assert ended[:3] == ["ended", "90", "100%"]  # 9 members, 5 env steps, 2 generations
    assert ended[-4:] == ["0", "Scripted-v0/ended", "Scripted-v0", "openai_es"]
    assert (stopped[0], stopped[2], stopped[-4], stopped[-1]) == ("stopped", "25%", "4", "cem")
    plain = {each["state"]: each for each in json.loads(call_command(capfd, "runs", made, "--json"))["runs"]}
    assert plain["stopped"]["of_budget"] == 0.25 and plain["stopped"]["best_score"] is not None
    assert "bytes" in plain["damaged"]["reason"] and 0 <= plain["ended"]["age"] < 3600


def test_a_run_whose_folder_is_locked_is_running_and_is_read_from_its_metrics(made, tmp_path):
    made = shutil.copytree(made, tmp_path / "w")
    folder = made / "Scripted-v0" / "stopped"
    with (folder / "metrics.csv").open("a") as file:
        row = (folder / "metrics.csv").read_text().splitlines()[-1].split(",")
        file.write(",".join(["6", "999", *row[2:]]) + "\n7,10")  # the last row is not finished
    before = find(made)["stopped"]
    lock = lock_folder(folder)
    running = find(made)["stopped"]
    os.close(lock)
    assert (before.state, running.state, find(made)["stopped"].state) == ("stopped", "running", "stopped")
    assert (running.env_steps, running.share_done) == (999, 0.75) and before.env_steps != 999


def test_a_running_run_with_an_infinite_count_is_damaged(tmp_path):
    folder = train(make_scripted_config(tmp_path, generations=1))
    with (folder / "metrics.csv").open("a") as file:
        file.write("1e999" + "," * (folder / "metrics.csv").read_text().splitlines()[0].count(",") + "\n")
    lock = lock_folder(folder)
    assert read_status(folder).state == "damaged"
    os.close(lock)


def test_runs_with_other_options_of_the_simulator_are_of_another_environment(tmp_path):
    for name, kwargs in (("a", {"truncate_at": 2}), ("b", {"truncate_at": 3}), ("c", {"truncate_at": 2})):
        train(make_scripted_config(tmp_path, run_name=name, generations=1, env_kwargs=kwargs))
    listed = find_listed(RunsConfig(folder=str(tmp_path)))
    assert {each.method for each in listed} == {"openai_es"}  # nothing in which methods of one environment differ
    groups = group_runs(read_runs(listed)).values()
    assert [[Path(run.saved.folder).name for run in runs] for (runs,) in map(dict.values, groups)] == [
        ["a", "c"],
        ["b"],
    ]


def test_looking_at_a_folder_does_not_keep_others_from_locking_it(made):
    assert not is_locked(made)
    lock = lock_folder(made)
    assert is_locked(made)
    os.close(lock)


@pytest.mark.parametrize(
    ("filters", "names"),
    [
        ({"state": ("ended", "damaged")}, {"ended", "damaged"}),
        ({"method": ("cem",)}, {"stopped"}),
        ({"environment": ("Scripted-v0",)}, {"ended", "stopped"}),
        ({"environment": ("Scripted",)}, {"ended", "stopped"}),
        ({"environment": ("Ant-v5", "Scripted-v")}, set()),
    ],
)
def test_filters(made, filters, names):
    assert find(made, **filters).keys() == names


def test_a_narrow_terminal_has_room_for_state_env_steps_and_score(made, capfd):
    assert call_command(capfd, "runs", made)[:42].split() == ["state", "env", "steps", "of", "budget", "best", "score"]


def test_flipped_bits_are_noticed_if_arrays_are_read(made, tmp_path):
    shutil.copytree(made / "Scripted-v0" / "ended", tmp_path / "run")
    *others, newest = sorted((tmp_path / "run" / "checkpoint").glob("*.ckpt"))
    flip_last_bit(newest)
    assert find(tmp_path)["run"].run.header.units == 2
    status = find(tmp_path, check=True)["run"]
    assert (status.state, status.run.header.units) == ("stopped", int(others[-1].stem))
    for path in others:
        flip_last_bit(path)
    assert find(tmp_path, check=True)["run"].state == "damaged"


def test_names_are_printed_as_text(made, tmp_path, capfd):
    shutil.copytree(made / "Scripted-v0" / "ended", tmp_path / "\x1b[31m[red]\n\u202ex")
    out = call_command(capfd, "runs", tmp_path)
    assert r"\x1b[31m[red]\n\u202ex" in out and "\x1b" not in out and "\u202e" not in out


def test_a_list_needs_no_simulator(made):
    code = "import sys; from hebbes.programs.list_runs import RunsConfig, find_listed"
    code += f"; find_listed(RunsConfig(folder={str(made)!r}))"
    code += f"; print([name for name in {LARGE} if name in sys.modules])"
    done = run_python("-c", code)
    assert done.stdout == "[]\n", done.stderr


def test_what_cannot_be_listed_is_one_line_and_status_2(made, tmp_path, refusal):
    for arguments, expected in [
        ([tmp_path], "holds no run"),
        ([tmp_path / "none"], "is not there"),
        ([made, "--state", "ending"], "state must be one of running, ended, stopped, damaged"),
        ([""], "folder must name a folder"),
        ([made, "--json", "--follow"], "json cannot be used with follow"),
        (["x" * 300], f"{'x' * 300}: File name too long"),
    ]:
        assert expected in refusal("runs", *arguments)


def test_a_resume_does_not_change_when_a_run_began(made, tmp_path):
    shutil.copytree(made, tmp_path / "w")
    folder = tmp_path / "w" / "Scripted-v0" / "ended"
    os.utime(folder / "config.yaml", (1e9, 1e9))
    resume(folder, generations=2)
    assert read_status(folder).age > 1e7


def test_followed_runs_are_printed_again_when_they_change(made, tmp_path):
    shutil.copytree(made, tmp_path / "w")
    with start(tmp_path / "w", "--follow", stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        first = [process.stdout.readline() for _ in range(4)]
        lock = lock_folder(tmp_path / "w" / "Scripted-v0" / "ended")
        again = process.stdout.readline()
        os.close(lock)
        process.send_signal(signal.SIGINT)
    assert first[0].startswith("state ") and first[3].startswith("stopped ")
    assert again.startswith("running ") and " Scripted-v0/ended " in again
    assert process.returncode == 130


def test_followed_runs_have_one_header_even_if_none_matches_at_first(made, tmp_path, monkeypatch):
    shutil.copytree(made, tmp_path / "w")
    config = RunsConfig(folder=str(tmp_path / "w"), state=("running",))
    printed, turns = [], []

    def begin_a_run_at_the_third_turn(_):
        turns.append(lock_folder(tmp_path / "w" / "Scripted-v0" / "ended") if len(turns) == 1 else None)
        if len(turns) == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr(list_runs, "print_or_exit", printed.append)
    monkeypatch.setattr(list_runs.time, "sleep", begin_a_run_at_the_third_turn)
    with pytest.raises(KeyboardInterrupt):
        list_runs._print_changes(config)
    os.close(turns[1])
    assert len(printed) == 2 and printed[0].startswith("state ") and printed[1].startswith("running ")


def test_on_a_terminal_the_list_is_drawn_again_in_the_same_place(made):
    terminal, other = pty.openpty()
    with start(
        made, "--follow", stdout=other, stderr=subprocess.DEVNULL, env={**os.environ, "TERM": "xterm"}
    ) as process:
        os.close(other)
        shown = b""
        while shown.count(b"\x1b[H\x1b[2J") < 2:
            shown += read_soon(terminal)
        process.send_signal(signal.SIGINT)
    os.close(terminal)
    assert shown.count(b"\x1b[H\x1b[2J") >= 2
    assert max(len(line) for line in shown.decode().split("\x1b[2J")[1].splitlines()) <= 80


def test_a_dumb_terminal_gets_plain_lines(made):
    terminal, other = pty.openpty()
    with start(
        made, "--follow", stdout=other, stderr=subprocess.DEVNULL, env={**os.environ, "TERM": "dumb"}
    ) as process:
        os.close(other)
        shown = b""
        while shown.count(b"\n") < 4:
            shown += read_soon(terminal)
        process.send_signal(signal.SIGINT)
    os.close(terminal)
    assert shown.startswith(b"state ") and b"\x1b" not in shown
