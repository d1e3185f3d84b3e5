"""Selection: the order of the members by fitness, and which of them tie."""

import numpy as np
from jaxtyping import Float64, Int


def best_first(
    fitness: Float64[np.ndarray, " members"], ties: Int[np.ndarray, " members"]
) -> Int[np.ndarray, " members"]:
    """Members from the fittest to those that failed (NaN); those that tie go by `ties`, the lowest first."""
    return np.lexsort((ties, np.where(np.isnan(fitness), np.inf, -fitness)))


def all_tie(fitness: Float64[np.ndarray, " members"]) -> bool:
    """Whether no member did better than another, so that they say nothing; failed members tie with one another."""
    return len(np.unique(fitness)) == 1


def tied_share(fitness: Float64[np.ndarray, " members"]) -> float:
    """Share of members with a fitness that another one has too; failed members tie with one another."""
    _, counts = np.unique(fitness, return_counts=True)
    return float(counts[counts > 1].sum() / len(fitness))
