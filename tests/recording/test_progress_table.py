"""The table of metrics: what its lines show, when they come, and that they fit."""

import io
from math import nan

import pytest

from hebbes.recording.console import Console
from hebbes.recording.progress_table import (
    HEADER_EVERY,
    ProgressTable,
    format_count,
    format_duration,
    format_return,
)

OF_RAY = {"nodes": 12, "workers": 1024, "chunks_outstanding": 9999, "chunks_sent_again": 12345}


def make_row(generation, **changes):
    return {
        "generation": generation,
        "env_steps": 1000 * generation,
        "return_mean": 12.345,
        "return_std": 1.5,
        "return_max": -3000.5,
        "mean_policy_return": nan,
        "mean_policy_rank": 3,
        "eval_return": nan,
        "best_score": 1234567.0,
        "env_steps_per_second": 41234.5,
        "seconds": 10.0 * generation,
    } | changes


def make_largest_row(**changes):
    """A row whose numbers take all the room that they may take."""
    row = make_row(123456, env_steps=987654321012, env_steps_per_second=1e9, seconds=3e7, mean_policy_rank=10000)
    return {name: -123456789.0 if name.startswith(("return", "best")) else row[name] for name in row} | changes


def split_header(header):
    return header.replace("env steps", "env_steps").split()


def show(rows, total=100, max_env_steps=None, is_due=lambda generation: True):
    stream = io.StringIO()
    budgets = {next(iter(rows[0])): total, "env_steps": max_env_steps}
    with ProgressTable(Console(stream), budgets) as table:
        for each in rows:
            table.show(each, is_due=is_due(next(iter(each.values()))))
    return stream.getvalue().splitlines()


def test_a_row_shows_its_metrics_under_their_names():
    header, line = show([make_row(25)])
    cells = dict(zip(split_header(header), line.split(), strict=True))
    assert cells == {
        "gen": "25", "env_steps": "25,000", "mean": "12.35", "max": "-3000.50", "policy": "-", "rank": "3",
        "best": "1234567", "steps/s": "41,234", "elapsed": "0:04:10", "left": "0:12:30",
    }  # fmt: skip


def test_the_time_left_follows_the_budget_that_ends_the_run_first():
    # 4 of 100 generations, but 4,000 of 8,000 env steps, after 40 s: half done.
    assert show([make_row(4)], max_env_steps=8000)[1].split()[-1] == "0:00:40"
    # 50 of 100 generations, and hardly any env steps of a large budget, after 500 s.
    assert show([make_row(50)], max_env_steps=10**9)[1].split()[-1] == "0:08:20"


def test_lines_come_for_the_first_row_for_those_that_are_due_and_for_the_last():
    lines = show([make_row(g) for g in range(1, 9)], is_due=lambda generation: generation % 3 == 0)
    assert [line.split()[0] for line in lines] == ["gen", "1", "3", "6", "8"]


def test_columns_align_and_the_header_returns():
    lines = show([make_row(g) for g in range(1, HEADER_EVERY + 2)])
    assert {len(line) for line in lines} == {80}
    assert [i for i, line in enumerate(lines) if "env steps" in line] == [0, HEADER_EVERY + 1]


def test_lines_of_a_cluster_show_its_workers_and_fit_too():
    header, line = show([make_row(1, **OF_RAY)])
    assert split_header(header)[-4:] == ["nodes", "workers", "out", "again"]
    assert line.split()[-4:] == ["12", "1,024", "9,999", "12,345"]
    assert len(header) <= 80
    assert len(line) <= 80


@pytest.mark.parametrize("row", [make_largest_row(), make_largest_row(**OF_RAY)], ids=["one machine", "cluster"])
def test_no_numbers_make_a_line_too_wide(row):
    assert max(map(len, show([make_row(1), row]))) <= 80


def test_a_hybrids_rows_show_the_return_and_the_evaluation():
    row = {"episode": 5, "env_steps": 5000, "return": -1.5, "eval_return": 2.5, "best_score": 2.5, "seconds": 1.0}
    header, line = show([row])
    assert split_header(header) == ["episode", "env_steps", "return", "eval", "best", "elapsed", "left"]
    assert line.split()[2:4] == ["-1.50", "2.50"]


@pytest.mark.parametrize(
    ("format_value", "value", "expected"),
    [
        (format_return, -9999.99, "-9999.99"),
        (format_return, -9999999.4, "-9999999"),
        (format_return, -9999.996, "-10000"),
        (format_return, -9999999.6, "-1.0e+07"),
        (format_return, -1.2e200, "-1e+200"),
        (format_return, -123456789.0, "-1.2e+08"),
        (format_return, nan, "-"),
        (format_count, 9_999_999, "9,999,999"),
        (format_count, 987_654_321, "987.7M"),
        (format_count, 987_654_321_012, "987.7G"),
        (format_duration, 35_999, "9:59:59"),
        (format_duration, 35_999.6, "10h00m"),
        (format_duration, 359_999, "99h59m"),
        (format_duration, 86400 * 999, "999d00h"),
    ],
)
def test_numbers_are_as_exact_as_their_room_allows(format_value, value, expected):
    assert format_value(value) == expected
