"""Times calls by turns, so that a busy moment of the machine affects all of them."""

import time
from collections.abc import Callable, Mapping
from statistics import median

ROUNDS = 30
WARM_UP = 3


def time_calls(calls: Mapping[str, Callable[[], object]]) -> dict[str, float]:
    """Median seconds of each call. The calls alternate, so that a busy moment of the machine affects all of them."""
    seconds: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(WARM_UP + ROUNDS):
        for name, call in calls.items():
            start = time.perf_counter()
            call()
            seconds[name].append(time.perf_counter() - start)
    return {name: median(values[WARM_UP:]) for name, values in seconds.items()}
