"""Selection: the ranking of the members by fitness, and their ties."""

import numpy as np
from jaxtyping import Float64, Int


def sort_best_first(
    fitness: Float64[np.ndarray, " members"], ties: Int[np.ndarray, " members"]
) -> Int[np.ndarray, " members"]:
    """Members in order of fitness, the best first, failed ones (NaN) last; ties are broken by `ties`, lowest first."""
    return np.lexsort((ties, np.where(np.isnan(fitness), np.inf, -fitness)))


def all_tie(fitness: Float64[np.ndarray, " members"]) -> bool:
    """Whether all members have the same fitness, or utility; failed members (NaN) tie with each other."""
    return len(np.unique(fitness)) == 1


def compute_tied_share(fitness: Float64[np.ndarray, " members"]) -> float:
    """Fraction of the members that tie with another one; failed members (NaN) tie with each other."""
    _, counts = np.unique(fitness, return_counts=True)
    return float(counts[counts > 1].sum() / len(fitness))
