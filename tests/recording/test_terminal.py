"""The live view on real pseudo-terminals: what their screens show, and that nothing of it is left behind."""

import os
import re
import signal
import subprocess
import sys
import time

import pytest
from screens import start

from tests.python_process import ROOT

GENERATIONS = 20
VIEW = f"of {GENERATIONS}: 3 of 8 members"
"""What only the view shows, while a generation runs."""


def begin(generations=GENERATIONS, seconds=0.05, *events, **options):
    return start("-m", "tests.recording.shown", generations, seconds, *events, **options)


def shows_view(screen):
    return VIEW in screen.below


def shows_all_of_view(screen):
    return all(part in screen.below for part in (VIEW, "left", "▁", "%"))


def end(program):
    """The screen after its end, of which the view is no part."""
    program.read()
    assert program.status == 0, program.screen.text
    assert program.screen.below == ""
    assert not any(mark in program.screen.text for mark in ("members", "population", "━", "▁"))
    return program.screen.text.splitlines()


def test_it_shows_the_newest_row_and_is_gone_at_the_end():
    program = begin()
    assert program.read(shows_all_of_view)
    view = program.screen.below
    for expected in ("Pong-v5   generation ", "mean policy ", "rank 2", "std 0.50", "max 3.00", "steps/s 41,234"):
        assert expected in view
    for expected in ("nodes 2", "workers 64", "chunks out 12", "sent again 1", "left 0:0", "▁", "━"):
        assert expected in view
    header, first, *_, last, message = end(program)
    assert (header.split()[0], first.split()[0], last.split()[0], message) == ("gen", "1", str(GENERATIONS), "the end")
    assert program.screen.num_wraps == 0
    assert "\x1b[?25" not in program.raw  # so that no crash leaves the cursor hidden


def test_it_prints_one_row_a_second_at_most():
    started = time.monotonic()
    program = begin(60, 0.03)
    rows = end(program)[1:-1]
    assert 2 <= len(rows) <= time.monotonic() - started + 2  # the first and the last one come in any case


@pytest.mark.slow
@pytest.mark.parametrize("columns", [20, 40, 80, 200])
def test_no_line_is_wider_than_the_terminal(columns):
    program = begin(columns=columns)
    assert program.read(lambda screen: "left" in screen.below)
    end(program)
    assert program.screen.num_wraps == 0
    assert program.screen.num_cut == 0 or columns < 40  # where a single text is longer than a line


@pytest.mark.slow
@pytest.mark.parametrize("lines", [1, 2, 5])
def test_a_terminal_of_few_lines_shows_the_first_of_them(lines):
    program = begin(lines=lines)
    if lines > 2:
        assert program.read(lambda screen: "generation" in screen.below)
    assert end(program)[-1] == "the end"


def test_errors_warnings_and_prints_appear_above_it():
    program = begin(GENERATIONS, 0.05, "say", "warn", "print")
    assert program.read(lambda screen: shows_view(screen) and "printed" in screen.text)
    above, _, below = program.screen.text.partition("generation ")
    for line in ("said on standard error", "a warning", "printed"):
        assert line in above
        assert line not in below
    lines = end(program)
    assert {"said on standard error", "printed"} <= set(lines)


def test_what_other_processes_print_is_not_erased():
    program = begin(GENERATIONS, 0.05, "raw")
    assert program.read(lambda screen: shows_view(screen) and "and again" in screen.text)
    program.read()
    assert "\nfrom another process\nand again" in program.screen.text
    assert "members" not in program.screen.below


def test_a_message_may_be_longer_than_a_line():
    program = begin(GENERATIONS, 0.05, "long")
    program.read()
    assert "0123456789" * 20 in program.screen.text.replace("\n", "")


def test_an_error_leaves_only_its_message():
    program = begin(GENERATIONS, 0.05, "fail")
    program.read()
    assert program.status == 1
    assert program.screen.text.splitlines()[-1] == "failed"
    assert "members" not in program.screen.text


@pytest.mark.slow
@pytest.mark.parametrize("columns", [(80, 40), (40, 100)])
def test_it_follows_the_size_of_the_window(columns):
    program = begin(GENERATIONS, 0.1, columns=columns[0])
    assert program.read(shows_all_of_view)
    program.resize(columns[1], 24)
    os.kill(program.pid, signal.SIGWINCH)
    length = len(program.raw)
    assert program.read(lambda screen: len(program.raw) > length + 1000)
    assert max(map(len, program.screen.below.splitlines())) <= columns[1]
    lines = end(program)
    assert max(map(len, lines[-3:])) <= columns[1]


@pytest.mark.slow
def test_ctrl_z_erases_it_until_the_program_goes_on():
    program = begin(100, 0.02)
    assert program.read(lambda screen: "members" in screen.below)
    program.send(b"\x1a")
    assert os.WIFSTOPPED(os.waitpid(program.pid, os.WUNTRACED)[1])
    with pytest.raises(AssertionError, match="nothing in"):
        program.read(timeout=0.5)
    assert program.screen.below == "" or program.screen.below == "^Z"
    os.kill(program.pid, signal.SIGCONT)
    assert program.read(lambda screen: "members" in screen.below)
    end(program)


@pytest.mark.slow
def test_a_shells_job_in_the_background_does_not_draw_it(tmp_path):
    """A shell with job control starts it in the background, and brings it to the foreground later."""
    script = f"set -m; {sys.executable} -m tests.recording.shown 100 0.02 & read; echo now; fg; echo over"
    program = start("-c", f"import os; os.execvp('bash', ['bash', '-c', {script!r}])")
    assert program.read(lambda screen: "gen " in screen.text)
    time.sleep(0.2)  # in which it would draw
    program.send(b"\n")
    assert program.read(lambda screen: "now" in screen.text)
    assert "members" not in program.raw.partition("now")[0]
    assert program.read(lambda screen: "members" in screen.below)
    program.read()
    assert program.screen.text.splitlines()[-1] == "over"


def test_a_killed_program_leaves_a_terminal_that_wraps():
    program = begin(10_000)
    assert program.read(lambda screen: "members" in screen.below)
    os.kill(program.pid, signal.SIGKILL)
    program.read()
    assert program.screen.wraps


@pytest.mark.parametrize("term", ["dumb", None])
def test_a_dumb_terminal_gets_plain_lines_that_fit(term):
    program = begin(5, 0.01, columns=40, TERM=term)
    program.read()
    assert "\x1b" not in program.raw
    lines = program.screen.text.splitlines()
    assert [line.split()[0] for line in lines[:-1]] == ["gen", "1", "2", "3", "4", "5"]
    assert max(map(len, lines)) <= 40


def test_no_color_is_respected():
    colored, plain = begin(), begin(NO_COLOR="1")
    for program in (colored, plain):
        end(program)
    assert "\x1b[36m" in colored.raw
    codes = [int(code or 0) for codes in re.findall(r"\x1b\[([0-9;]*)m", plain.raw) for code in codes.split(";")]
    assert max(codes, default=0) < 30  # such as bold. From 30 on they are colors


@pytest.mark.slow
@pytest.mark.parametrize("locale", [{"LC_ALL": "C"}, {"LANG": "C"}, {"PYTHONIOENCODING": "ascii"}])
def test_without_unicode_it_is_drawn_in_ascii(locale):
    program = begin(**locale)
    assert program.read(lambda screen: "%" in screen.below)
    assert "#" in program.screen.below
    end(program)
    assert program.raw.isascii()


def test_only_a_stream_that_is_a_terminal_is_drawn_on():
    command = f"{sys.executable} -m tests.recording.shown 5 0.1"
    program = start("-c", f"import os; os.system('{command} 2>&1 | cat')")
    program.read()
    assert "\x1b" not in program.raw
    assert [line.split()[0] for line in program.screen.text.splitlines()] == ["gen", "1", "2", "3", "4", "5", "the"]


def test_errors_go_where_standard_error_goes(tmp_path):
    errors = tmp_path / "errors"
    program = start("-c", f"import os; os.system('{sys.executable} -m tests.recording.shown 9 0.05 say 2>{errors}')")
    end(program)
    assert errors.read_text() == "said on standard error\n"
    assert "said" not in program.screen.text


@pytest.mark.slow
def test_a_terminal_that_hangs_up_does_not_end_the_program(tmp_path):
    """Under nohup: the hang-up itself is ignored, and every write fails."""
    done = tmp_path / "done"
    script = f"""
import signal, runpy, sys, pathlib
signal.signal(signal.SIGHUP, signal.SIG_IGN)
from tests.recording.shown import main
main(100, 0.02)
pathlib.Path({str(done)!r}).write_text("yes")
"""
    program = start("-c", script)
    assert program.read(lambda screen: "members" in screen.below)
    os.close(program.terminal)
    assert os.waitstatus_to_exitcode(os.waitpid(program.pid, 0)[1]) == 0
    assert done.read_text() == "yes"


def test_a_closed_pipe_does_not_end_the_program():
    command = f"{sys.executable} -m tests.recording.shown 9 0.05 | head -1"
    done = subprocess.run(
        ["bash", "-c", f"{command}; echo ${{PIPESTATUS[0]}}"], cwd=ROOT, capture_output=True, text=True
    )
    assert done.stderr == ""
    assert done.stdout.splitlines()[-1] == "0"


@pytest.mark.slow
def test_programs_say_what_they_do_from_start_to_end(tmp_path):
    """Two seeds and an evaluation at 80 x 24. Each phase is on the screen."""
    flags = ["--environment", "CartPole-v1", "--backend", "gymnasium", "--threads", "1", "--generations", "10"]
    flags += ["--popsize", "40", "--test_episodes", "120"]  # phases of seconds: the view is drawn four times a second
    flags += ["--seeds", "2", "--folder", tmp_path, "--run_name", "a"]
    program, phases = start("train_static.py", *flags), set()
    words = ("starting", "seed 2 of 2", "generation ", "final test", "of 120 episodes")

    def collect(screen):
        phases.update(word for word in words if word in screen.below)
        return False

    program.read(collect, timeout=300)
    assert program.status == 0, program.screen.text
    assert phases == set(words)
    assert program.screen.below == ""
    policies = sorted(tmp_path.glob("CartPole-v1/a/*/best.dat"))
    evaluation = start("evaluate_static.py", "--path_weights", *policies, "--episodes", "120", "--threads", "1")
    assert evaluation.read(lambda screen: "policy 2 of 2   playing: " in screen.below)
    evaluation.read()
    assert evaluation.status == 0, evaluation.screen.text
    assert evaluation.screen.below == ""
    assert "policy 2 of 2" not in evaluation.screen.text


@pytest.mark.slow
def test_a_quiet_training_shows_nothing_on_a_terminal(tmp_path):
    flags = ["--environment", "CartPole-v1", "--generations", 2, "--popsize", 4, "--folder", tmp_path]
    flags += ["--max_episode_steps", 99, "--test_episodes", 1, "--threads", 1]  # fewer would all tie, which is said
    program = start("train_static.py", *flags, "--quiet")
    program.read()
    assert program.status == 0
    assert program.screen.text == ""
