"""Restoring: checks all arrays of a strategy's state before any of them is used."""

from collections.abc import Mapping

import numpy as np


def copy_matching_arrays(template: Mapping[str, np.ndarray], state: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Copies of the arrays of `state`, which must have the names, shapes and types of `template`.

    KeyError names a missing array. ValueError names an unexpected one, or one of another shape or type.
    """
    if unknown := sorted(set(state) - set(template)):
        raise ValueError(f"the state of another strategy: {', '.join(unknown)} not expected")
    for name, expected in template.items():
        found = state[name]
        if (found.shape, found.dtype) != (expected.shape, expected.dtype):
            raise ValueError(
                f"{name} must be {expected.dtype} of shape {expected.shape}, got {found.dtype} {found.shape}"
            )
    return {name: np.array(state[name]) for name in template}
