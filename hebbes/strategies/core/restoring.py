"""Restoring: checks all arrays of a strategy's state before any of them is used."""

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np


def copy_matching_arrays(template: Mapping[str, np.ndarray], state: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Copies of the arrays of `state`, which must have the names, shapes and types of `template`. Lists get its types.

    KeyError names a missing array. ValueError names an unexpected one, or one of another shape or type.
    """
    if unknown := sorted(set(state) - set(template)):
        raise ValueError(f"the state of another strategy: {', '.join(unknown)} not expected")
    for name, expected in template.items():
        found = state[name] if isinstance(state[name], np.ndarray) else np.asarray(state[name], expected.dtype)
        if (found.shape, found.dtype) != (expected.shape, expected.dtype):
            raise ValueError(
                f"{name} must be {expected.dtype} of shape {expected.shape}, got {found.dtype} {found.shape}"
            )
    return {name: np.array(state[name], expected.dtype) for name, expected in template.items()}


class Restorable:
    """Something whose state is the value of some attributes: arrays and numbers."""

    STATE: ClassVar[Mapping[str, str]]
    """Name in the state -> attribute, for all that changes."""

    @property
    def _holder(self) -> Any:
        """What has the attributes."""
        return self

    def state_dict(self) -> dict[str, np.ndarray]:
        """The attributes in STATE, copied."""
        return {name: np.array(getattr(self._holder, attribute)) for name, attribute in self.STATE.items()}

    def load_state_dict(self, state: Mapping[str, np.ndarray]) -> None:
        """Continues from what `state_dict` returned; KeyError or ValueError for the state of something else."""
        arrays = copy_matching_arrays(self.state_dict(), state)
        for name, attribute in self.STATE.items():
            setattr(self._holder, attribute, arrays[name] if arrays[name].ndim else arrays[name].item())
