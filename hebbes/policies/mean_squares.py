"""The mean squared weight of members, dense or low-rank."""

import numpy as np
from jaxtyping import Float64

from hebbes.contracts.policy import LowRankWeights, Weights, name_left_factor, name_right_factor


def compute_mean_squares(weights: Weights) -> Float64[np.ndarray, " members"]:
    """Mean over each member's parameters of their squares, in float64.

    Low-rank members are not made into rows: |W + A B^T|^2 = |W|^2 + 2 a . W b + |A B^T|^2.
    """
    if not isinstance(weights, LowRankWeights):
        squares = [np.einsum("p,p->", row, row, dtype=np.float64) for row in weights]  # no row is copied to float64
        return np.array(squares) / weights.shape[1]
    layout, total = weights.layout, np.zeros(len(weights))
    for name, where in layout.slices.items():
        center = weights.center[where].astype(np.float64)
        if name in layout.matrices:
            a, b = (
                weights.factors.view(weights.noise, factor).astype(np.float64)
                for factor in (name_left_factor(name), name_right_factor(name))
            )
            products = np.einsum("mro,mro->m", a, np.einsum("mri,io->mro", b, center.reshape(b.shape[2], a.shape[2])))
            squares = np.einsum("mrs,mrs->m", np.einsum("mro,mso->mrs", a, a), np.einsum("mri,msi->mrs", b, b))
            total += center @ center + 2 * products + squares
        else:
            total += np.square(center + weights.factors.view(weights.noise, name).reshape(len(weights), -1)).sum(axis=1)
    return total / layout.num_params
