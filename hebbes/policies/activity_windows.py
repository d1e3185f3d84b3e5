"""Moving averages of activities, from which the weights of a Hebbian attractor network learn.

Dittrich, van Diggelen & Floreano 2026, "Hebbian Attractor Networks for Robot Locomotion", ICRA, arXiv 2603.22512; code
alexanderdittrich/hebbian-attractor-networks c1aa5b9, `model/activation_buffer.py: MovingAverageBuffer`.
"""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float32, Int64

Activities = Sequence[Float32[np.ndarray, "members _neurons"]]
"""One array per layer."""
Windows = Sequence[Float32[np.ndarray, "members length _neurons"]]
"""The latest activities, in no order. 0 where there are none yet."""


def make_windows(num_members: int, length: int, sizes: Sequence[int]) -> list[np.ndarray]:
    """Empty windows of this length, one for each layer of these sizes."""
    return [np.zeros((num_members, length, size), np.float32) for size in sizes]


def average_activities(
    windows: Windows, counts: Int64[np.ndarray, " members"], activities: Activities
) -> list[np.ndarray]:
    """Adds activities to the windows, in place, and returns the mean of each window.

    Args:
        windows: one for each layer.
        counts: how many activities each member has added, which this call increments.
        activities: those of one env step.
    """
    length = windows[0].shape[1]
    members, places = np.arange(len(counts)), counts % length
    counts += 1
    num_averaged = np.minimum(counts, length).astype(np.float32)[:, np.newaxis]
    means = []
    for window, activity in zip(windows, activities, strict=True):
        window[members, places] = activity
        means.append(window.sum(axis=1) / num_averaged)
    return means
