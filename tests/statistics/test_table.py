"""Tables, compared with the expected text."""

from math import inf, nan

import pytest

from hebbes.statistics.table import format_number, format_table


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        *[(0.5, "0.50"), (-1.234, "-1.23"), (12.34, "12.3"), (499.6, "500"), (-12345.6, "-12346")],
        *[(1234567.0, "1.23e+06"), (nan, "-"), (-inf, "-")],
        *[(0.0, "0.00"), (0.0075, "0.0075"), (-0.012345, "-0.0123"), (1e-5, "1e-05")],
    ],
)
def test_numbers_have_three_digits(value, expected):
    assert format_number(value) == expected


def test_columns_are_aligned_and_remarks_may_be_long():
    rows = [("1", "193 [175, 212]", "7"), ("2", "a remark that is longer than its column"), ("10 runs", "5", "80")]
    assert format_table(("", "mean", "std"), rows).splitlines() == [
        "                   mean  std",
        "1        193 [175, 212]    7",
        "2        a remark that is longer than its column",
        "10 runs               5   80",
    ]


def test_columns_of_texts_are_aligned_left():
    rows = [("ended", "7", "a/b", "cem"), ("stopped", "12", "a long name", "ars")]
    assert format_table(("state", "steps", "run", "method"), rows, ("run", "method")).splitlines() == [
        "state    steps  run          method",
        "ended        7  a/b          cem",
        "stopped     12  a long name  ars",
    ]
