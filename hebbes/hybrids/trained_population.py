"""A population some of whose members have been trained by gradients since the strategy was asked for it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Float32, Float64

from hebbes.contracts.policy import Weights
from hebbes.strategies.core.populations import GaussianPopulation


@dataclass(frozen=True)
class TrainedPopulation:
    """Members of a Gaussian population. The noise of a trained one is what leads from the center to its weights."""

    asked: GaussianPopulation
    trained: Mapping[int, Float32[np.ndarray, " params"]]
    """Weights of the members that have been trained."""

    def __len__(self) -> int:
        """Number of members, the mean policy included."""
        return len(self.asked)

    def weights(self, ids: Sequence[int]) -> Weights:
        """Parameters of the members `ids`, one row each."""
        rows = np.asarray(self.asked.weights(ids))
        for place, member in enumerate(ids):
            if member in self.trained:
                rows[place] = self.trained[member]
        return rows

    def weighted_noise_sums(
        self, ids: Sequence[int], utilities: Float[np.ndarray, "rows ids"], powers: Sequence[int]
    ) -> Float64[np.ndarray, "rows params"]:
        """Sums of utility times noise to the power, one for each row."""
        trained = {place: self.trained[member] for place, member in enumerate(ids) if member in self.trained}
        of_others = np.array(utilities)
        of_others[:, list(trained)] = 0
        sums = self.asked.weighted_noise_sums(ids, of_others, powers)
        for place, row in trained.items():
            if utilities[:, place].any():  # a member that failed may be NaN, and has no utility
                noise = (row.astype(np.float64) - self.asked.center) / self.asked.sigma
                for total, utility, power in zip(sums, utilities[:, place], powers, strict=True):
                    total += utility * noise**power
        return sums
