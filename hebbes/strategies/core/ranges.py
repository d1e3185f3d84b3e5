"""Ranges: the values that a strategy's settings may have."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np

RANGES: dict[str, Callable[[float], bool]] = {
    "a finite number > 0": lambda value: 0 < value < np.inf,
    "a finite number >= 0": lambda value: 0 <= value < np.inf,
    "in (0, 1]": lambda value: 0 < value <= 1,
    "in [0, 1)": lambda value: 0 <= value < 1,
}


def check_ranges(settings: object, ranges: Mapping[str, Sequence[str]]) -> None:
    """Refuses, with ValueError, settings outside their range; one that is None is not given and passes.

    Args:
        settings: a dataclass of settings.
        ranges: names of settings by their range, a key of RANGES.
    """
    for allowed, names in ranges.items():
        for name in names:
            value = getattr(settings, name)
            if value is not None and not RANGES[allowed](value):
                raise ValueError(f"{name} must be {allowed}, got {value}")
