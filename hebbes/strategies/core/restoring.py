"""Restoring: checks the named arrays of a strategy's state before any of them is used."""

from collections.abc import Mapping

import numpy as np


def matching(template: Mapping[str, np.ndarray], state: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Copies of the arrays of `state`, which must have the names, shapes and types of `template`.

    KeyError names an array that is missing; ValueError names one that is not expected, or of another shape or type.
    """
    if unknown := sorted(set(state) - set(template)):
        raise ValueError(f"the state of another strategy: {', '.join(unknown)} not expected")
    for name, wanted in template.items():
        found = state[name]
        if (found.shape, found.dtype) != (wanted.shape, wanted.dtype):
            raise ValueError(f"{name} must be {wanted.dtype} of shape {wanted.shape}, got {found.dtype} {found.shape}")
    return {name: np.array(state[name]) for name in template}
