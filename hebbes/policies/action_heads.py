"""Action heads: functions from a policy's outputs (members, outputs) to actions. The wrappers apply the bounds."""

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from jaxtyping import Float32, Int64, Shaped

Outputs: TypeAlias = Float32[np.ndarray, "members outputs"]
Head: TypeAlias = Callable[[Outputs], Shaped[np.ndarray, "members ..."]]


def argmax(outputs: Outputs) -> Int64[np.ndarray, " members"]:
    """Index of the greatest output, the first one if several are equal. The episode loop has refused NaN before."""
    return outputs.argmax(axis=1)


def identity(outputs: Outputs) -> Outputs:
    """The outputs themselves."""
    return outputs


def tanh(outputs: Outputs) -> Outputs:
    """Outputs squashed to [-1, 1]."""
    return np.tanh(outputs)


def tanh_sigmoid(outputs: Outputs) -> Outputs:
    """CarRacing's (steer, gas, brake): the first output squashed to [-1, 1], all others to [0, 1]."""
    actions = np.tanh(outputs * np.where(np.arange(outputs.shape[1]) == 0, np.float32(1), np.float32(0.5)))
    actions[:, 1:] = (1 + actions[:, 1:]) / 2  # sigmoid(x) = (1 + tanh(x / 2)) / 2, which cannot overflow
    return actions


HEADS: dict[str, Head] = {"argmax": argmax, "identity": identity, "tanh": tanh, "tanh_sigmoid": tanh_sigmoid}
