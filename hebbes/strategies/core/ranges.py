"""Ranges: the values that the settings of a strategy may have."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np

RANGES: dict[str, Callable[[float], bool]] = {
    "a finite number > 0": lambda value: 0 < value < np.inf,
    "a finite number >= 0": lambda value: 0 <= value < np.inf,
    "in (0, 1]": lambda value: 0 < value <= 1,
    "in [0, 1)": lambda value: 0 <= value < 1,
}


def check_ranges(settings: object, ranges: Mapping[str, Sequence[str]]) -> None:
    """Raises ValueError for a setting outside its range; None means "not given" and passes.

    Args:
        settings: a dataclass of settings.
        ranges: range, a key of RANGES -> names of the settings that must lie in it.
    """
    for allowed, names in ranges.items():
        for name in names:
            value = getattr(settings, name)
            if value is not None and not RANGES[allowed](value):
                raise ValueError(f"{name} must be {allowed}, got {value}")
