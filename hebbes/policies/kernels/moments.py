"""Running moments of observations, one member a row (Welford 1962, Technometrics 4(3))."""

import numpy as np
from numba import float64, int64, types, void

from hebbes.compilation import njit
from hebbes.policies.kernels.observations import DTYPES

_MEMBERS, _COUNTS, _MOMENTS = types.Array(int64, 1, "C", readonly=True), int64[::1], float64[:, ::1]
_ROWS = [types.Array(kind, 2, "C", readonly=True) for kind in DTYPES.values()]
_SIGNATURES = [void(_MEMBERS, rows, _COUNTS, _MOMENTS, _MOMENTS) for rows in _ROWS]


@njit(_SIGNATURES, nogil=True, cache=True, error_model="numpy")
def add_observations(
    members: np.ndarray, observations: np.ndarray, counts: np.ndarray, means: np.ndarray, squares: np.ndarray
) -> None:
    """Adds row k of the observations to the moments of member `members[k]`: count, mean, sum of squared deviations."""
    for k in range(len(members)):
        member, row = members[k], observations[k]
        counts[member] += 1
        count, mean, square = np.float64(counts[member]), means[member], squares[member]
        for i in range(row.size):
            shift = row[i] - mean[i]
            mean[i] += shift / count
            square[i] += shift * (row[i] - mean[i])
