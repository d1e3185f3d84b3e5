"""pytorch-es' small network (atgambardella/pytorch-es, `--small-net`): two hidden layers of 64 with SELU, and biases.

It is `hebbes.policies.mlp` with these sizes. `--hidden_sizes`, `--bias` and `--activation` have no effect. Departure:
the search starts at Xavier uniform weights and biases of zero, theirs as PyTorch draws its layers
(`--initialization pytorch`).
"""

from dataclasses import dataclass
from typing import ClassVar

from hebbes.policies.mlp import MLP


@dataclass(frozen=True)
class Small(MLP):
    """Fully connected layers on the flattened observation. Class variables are no fields, and so no options."""

    hidden_sizes: ClassVar[tuple[int, ...]] = (64, 64)  # type: ignore[misc]
    bias: ClassVar[bool] = True  # type: ignore[misc]
    activation: ClassVar[str] = "selu"  # type: ignore[misc]
