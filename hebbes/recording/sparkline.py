"""Sparkline: a curve in one line of text."""

from itertools import pairwise
from math import isfinite

MAX_POINTS = 256
"""Neighbors are averaged when there are more."""
BLOCKS, ASCII = "▁▂▃▄▅▆▇█", "_.-=*#"


class Sparkline:
    """The curve of values that are added one by one. Its memory does not grow without bound."""

    def __init__(self) -> None:
        self._means: list[float] = []
        self._size = 1  # number of values in a mean
        self._newest: list[float] = []

    def add(self, value: float) -> None:
        """Adds a value. NaN is left out."""
        if not isfinite(value):
            return
        self._newest.append(value)
        if len(self._newest) == self._size:
            self._means.append(sum(self._newest) / self._size)
            self._newest.clear()
        if len(self._means) == MAX_POINTS:
            self._means = [(a + b) / 2 for a, b in zip(self._means[::2], self._means[1::2], strict=True)]
            self._size *= 2

    def draw(self, width: int, levels: str = BLOCKS) -> str:
        """The curve in at most `width` characters. Empty for less than two points."""
        count = min(width, len(self._means))
        edges = [number * len(self._means) // max(1, count) for number in range(count + 1)]
        points = [sum(self._means[a:b]) / (b - a) for a, b in pairwise(edges)]
        if len(points) < 2:
            return ""
        low, high = min(points), max(points)
        scale = (len(levels) - 1) / (high - low) if high > low else 0.0
        return "".join(levels[round((point - low) * scale)] for point in points)
