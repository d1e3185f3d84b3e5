"""The curve in a line of text."""

from math import nan

from hebbes.recording.sparkline import ASCII, MAX_POINTS, Sparkline


def draw(values, width, **options):
    curve = Sparkline()
    for value in values:
        curve.add(value)
    return curve.draw(width, **options)


def test_it_rises_and_falls_with_the_values():
    assert draw([0, 7, 3.4, nan, 1], 10) == "▁█▄▂"
    assert draw([0, 1, 2, 3, 4, 5], 10, levels=ASCII) == ASCII


def test_many_values_are_averaged_into_the_width():
    assert draw(range(16), 8) == "▁▂▃▄▅▆▇█"
    assert draw(range(10 * MAX_POINTS), 8) == "▁▂▃▄▅▆▇█"


def test_equal_values_are_a_flat_line_and_one_is_none():
    assert draw([5, 5, 5], 10) == "▁▁▁"
    assert draw([5], 10) == draw([], 10) == draw([nan, nan], 10) == ""
