"""The progress display: a plain table in a log file, a live bar on a terminal."""

import io
import re
from math import nan

import pytest

from hebbes.recording.console import HEADER_EVERY, Console


class FakeTerminal(io.StringIO):
    def isatty(self):
        return True


def make_row(generation, **changes):
    return {
        "generation": generation,
        "env_steps": 1000 * generation,
        "return_mean": 12.345,
        "return_max": -3000.5,
        "mean_policy_return": nan,
        "mean_policy_rank": 3,
        "best_score": 1234567.0,
        "env_steps_per_second": 41234.5,
        "seconds": 10.0 * generation,
    } | changes


def split_header(header):
    return header.replace("env steps", "env_steps").replace("mean policy", "mean_policy").split()


def show(rows, stream, total=100, max_env_steps=None, print_every=1):
    budgets = {"generation": total, "env_steps": max_env_steps}
    with Console(budgets, print_every=print_every, stream=stream) as console:
        for each in rows:
            console.show(each)
    return stream.getvalue().splitlines()


def test_a_row_shows_its_metrics_under_their_names():
    header, line = show([make_row(25)], io.StringIO())
    cells = dict(zip(split_header(header), line.split(), strict=True))
    assert cells == {
        "gen": "25", "env_steps": "25,000", "mean": "12.35", "max": "-3000.50", "mean_policy": "-", "rank": "3",
        "best": "1.235e+06", "steps/s": "41,234", "elapsed": "0:04:10", "left": "0:12:30",
    }  # fmt: skip


def test_the_time_left_follows_the_budget_that_ends_the_run_first():
    # 4 of 100 generations, but 4,000 of 8,000 env steps, after 40 s: half done.
    assert show([make_row(4)], io.StringIO(), max_env_steps=8000)[1].split()[-1] == "0:00:40"
    # 50 of 100 generations, and hardly any env steps of a large budget, after 500 s.
    assert show([make_row(50)], io.StringIO(), max_env_steps=10**9)[1].split()[-1] == "0:08:20"


def test_lines_come_at_the_first_every_nth_and_the_last_generation():
    lines = show([make_row(g) for g in range(1, 8)], io.StringIO(), total=7, print_every=3)
    assert [line.split()[0] for line in lines] == ["gen", "1", "3", "6", "7"]


def test_a_run_that_ends_early_still_shows_its_last_generation():
    lines = show([make_row(g) for g in range(1, 6)], io.StringIO(), total=100, print_every=4)
    assert [line.split()[0] for line in lines] == ["gen", "1", "4", "5"]


def test_columns_align_and_the_header_returns():
    lines = show([make_row(g) for g in range(1, HEADER_EVERY + 2)], io.StringIO())
    assert {len(line) for line in lines} == {91}
    assert [i for i, line in enumerate(lines) if "env steps" in line] == [0, HEADER_EVERY + 1]


def test_a_log_file_gets_no_control_characters_and_messages_as_they_are(monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    stream = io.StringIO()
    with Console({"generation": 10}, print_every=1, stream=stream) as console:
        console.print_message("[bold]Pong-v5[/bold]")
        console.show(make_row(1))
    assert stream.getvalue().splitlines()[0] == "[bold]Pong-v5[/bold]"
    assert all(character.isprintable() or character == "\n" for character in stream.getvalue())


def test_a_terminal_also_gets_a_bar_with_every_generation(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    stream = FakeTerminal()
    with Console({"generation": 10}, print_every=5, stream=stream) as console:
        console.print_message("[bold] stays")
        console.show(make_row(1))
        console.show(make_row(2))
    text = stream.getvalue()
    assert "[bold] stays" in text
    assert "generation 2/10, mean 12.35" in text
    assert " 20 %" in text
    assert "\x1b[?25h" in text  # the cursor is shown again


@pytest.mark.parametrize(
    ("width", "shown"),
    [
        (91, "gen env_steps mean max mean_policy rank best steps/s elapsed left"),
        (80, "gen env_steps mean max mean_policy best steps/s elapsed"),
        (50, "gen env_steps mean max best"),
        (20, "gen mean"),
    ],
)
def test_a_terminal_gets_the_columns_that_it_has_room_for(width, shown, monkeypatch):
    monkeypatch.setenv("COLUMNS", str(width))
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]|\r", "", "\n".join(show([make_row(1)], FakeTerminal())))
    header, line = re.findall("^ +(?:gen|1) .*$", text, re.MULTILINE)
    assert split_header(header) == shown.split()
    assert len(line.split()) == len(shown.split())
    assert len(header) == len(line) <= width


def test_a_stream_that_can_no_longer_be_written_does_not_end_the_run():
    class Full(io.StringIO):
        def write(self, text):
            raise OSError(28, "No space left on device")

    with Console({"generation": 10}, print_every=1, stream=Full()) as console:
        console.print_message("lost")
        console.print_message("lost too")
