"""Selection: the order of the members by fitness."""

import numpy as np
from jaxtyping import Float64, Int


def best_first(fitness: Float64[np.ndarray, " members"]) -> Int[np.ndarray, " members"]:
    """Members from the fittest to those that failed (NaN); ties stay in the order of the members."""
    return np.argsort(np.where(np.isnan(fitness), np.inf, -fitness), kind="stable")
