"""What an option allows, by hand. That every option's class checks it: tests/training/test_owners.py."""

from collections.abc import Mapping
from math import inf, nan
from typing import Any

import numpy as np
import pytest

from hebbes.contracts.option import check_argument, parse_range


@pytest.mark.parametrize(
    ("text", "inside", "outside"),
    [
        (">= 1", [1, 1.5, 1e300], [0.999, 0, -3, nan]),
        ("> 0", [5e-324, 1], [0, -0.0, -1, nan]),
        ("<= 2", [2, -7], [2.001, nan]),
        ("< 2", [1.999, -7], [2, 3]),
        ("in [0, 1]", [0, 0.5, 1], [-1e-9, 1.001, nan]),
        ("in (0, 1]", [1e-9, 1], [0, 1.001]),
        ("in [0, 1)", [0, 0.999], [-1, 1]),
        ("in (-1e+30, 1e+30)", [0, 1e29], [-1e30, 1e30, inf]),
    ],
)
def test_a_range_holds_its_numbers(text, inside, outside):
    interval = parse_range(text)
    assert [interval.contains(each) for each in (*inside, *outside)] == [True] * len(inside) + [False] * len(outside)


@pytest.mark.parametrize("text", ["", "1", ">1", "in [0; 1]", "0 to 1"])
def test_a_range_that_is_written_otherwise_is_an_error(text):
    with pytest.raises(ValueError, match="a range is written '>= 1' or"):
        parse_range(text)


@pytest.mark.parametrize(
    ("value", "hint", "converted"),
    [
        (3, float, 3.0),
        (np.float32(0.5), float, 0.5),
        (np.int64(3), int, 3),
        ([1, np.int32(2)], tuple[int, ...], (1, 2)),
        ([1, 2], tuple[float, float] | None, (1.0, 2.0)),
        (None, int | None, None),
        ({"g": 5}, Mapping[str, Any], {"g": 5}),
        (0, int | None, 0),
    ],
)
def test_values_get_the_type_that_is_declared(value, hint, converted):
    found = check_argument("size", value, hint)
    assert found == converted and type(found) is type(converted)


@pytest.mark.parametrize(
    ("value", "hint", "rules", "message"),
    [
        (None, int, {}, "size must be a whole number, got None"),
        (1.0, int, {}, "size must be a whole number, got 1.0"),
        (True, int, {}, "size must be a whole number, got True"),
        (True, float, {}, "size must be a number, got True"),
        ("1", float | None, {}, "size must be a number or none, got '1'"),
        (1, str, {}, "size must be a text, got 1"),
        (1, bool, {}, "size must be true or false, got 1"),
        (3, tuple[int, ...], {}, "size must be a list of whole numbers, got 3"),
        ((1,), tuple[int, int], {}, "size must be a list of 2 whole numbers, got [1]"),
        ((1, 0), tuple[int, ...], {"range": ">= 1"}, "size must be >= 1, got [1, 0]"),
        (0.0, float, {"range": "> 0"}, "size must be a finite number > 0, got 0.0"),
        (inf, float, {}, "size must be a finite number, got inf"),
        (nan, float, {"range": "in [0, 1]"}, "size must be in [0, 1], got nan"),
        (0, int, {"range": ">= 1", "advice": "; try 1"}, "size must be >= 1, got 0; try 1"),
        (2**63, int, {}, "size must be below 2^63, got 9223372036854775808"),
        (-(2**63) - 1, int, {}, "size must be above -2^63, got -9223372036854775809"),
        ("ax", str, {"choices": ("ab", "cd")}, "size must be one of ab, cd, got 'ax'"),
        ("workrs", str, {"choices": ("workers", "ray")}, "got 'workrs', did you mean 'workers'?"),
        ("a\0", str, {}, "size must be a text without NUL characters, got 'a\\x00'"),
    ],
)
def test_anything_else_is_refused_with_the_name_what_is_allowed_and_the_value(value, hint, rules, message):
    with pytest.raises(ValueError) as refused:
        check_argument("size", value, hint, **rules)
    assert str(refused.value).startswith("size must be ") and str(refused.value).endswith(message)
