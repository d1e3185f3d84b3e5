"""Virtual batch normalization: scales each channel by its mean and deviation over a fixed reference batch.

Salimans et al. 2016, "Improved Techniques for Training GANs", arXiv 1606.03498, sec. 3.5. For evolution strategies,
where it makes perturbed networks act differently: Salimans et al. 2017, arXiv 1703.03864, sec. 2.2. The reference batch
is the buffer `virtual_batch`. Each member has its own statistics, computed with its weights when an episode begins.

Departures from the 2016 paper: An observation does not join the batch that normalizes it: the statistics are those of
the reference batch alone. There is no gain. A layer's biases, if any, are added after normalization. In a layer with
pooling, the maxima are normalized. As in both papers, statistics average over pixels too.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from jaxtyping import Float32

from hebbes.contracts.option import option
from hebbes.contracts.policy import Buffers, Weights
from hebbes.policies.base import SizedPolicy

Maps: TypeAlias = Float32[np.ndarray, "members channels height width"]
Statistics: TypeAlias = dict[str, Float32[np.ndarray, "members _channels"]]
"""A layer's "mean" and "deviation". Layers differ in their channels."""
Convolution: TypeAlias = tuple[Callable[[Weights, Maps], Maps], Callable[[Weights, Maps], None]]
"""Two functions: one computes a layer's pre-activations from maps, the other applies the activation in place."""

EPSILON = np.float32(1e-3)
"""Added to the variance, to avoid a division by zero for a constant channel."""


@dataclass(frozen=True, kw_only=True)
class UsesVirtualBatch(SizedPolicy):
    """A policy with virtual batch normalization as an option."""

    virtual_batch: int = option(
        0, "frames of random play whose statistics normalize the convolutions; 0 for none", range=">= 0"
    )

    @property
    def num_reference_frames(self) -> int:
        """Frames that the buffer `virtual_batch` must hold."""
        return self.virtual_batch

    def check_buffers(self, buffers: Buffers) -> None:
        """Raises ValueError if the policy needs a reference batch and the buffers have none."""
        if self.virtual_batch:
            self.read_reference_frames(buffers)

    def read_reference_frames(self, buffers: Buffers) -> Float32[np.ndarray, "frames channels height width"]:
        """The reference batch as inputs of the network, channels first. Raises ValueError if the buffers lack it."""
        expected = (self.virtual_batch, *self.observation_shape)
        found = buffers["virtual_batch"].shape if "virtual_batch" in buffers else None
        if found != expected:
            raise ValueError(f"virtual_batch: the buffers must hold frames of shape {expected}, got {found}")
        return np.moveaxis(self.prepare_inputs(buffers["virtual_batch"], buffers), -1, 1)


def apply_convolutions(
    weights: Weights, convolutions: Sequence[Convolution], maps: Maps, statistics: Sequence[Statistics] | None
) -> Float32[np.ndarray, "members features rows columns"]:
    """Output maps of the layers for these images, normalized if there are statistics (one entry per layer)."""
    for number, (convolve, activate) in enumerate(convolutions):
        maps = convolve(weights, maps)
        if statistics is not None:
            _normalize(maps, statistics[number])
        activate(weights, maps)
    return maps


def compute_reference_statistics(
    weights: Weights, convolutions: Sequence[Convolution], frames: Float32[np.ndarray, "frames channels height width"]
) -> list[Statistics]:
    """Each member's statistics, one entry per layer. The layers before are normalized already."""
    members = [_compute_member_statistics(weights[np.array([k])], convolutions, frames) for k in range(len(weights))]
    return [
        {name: np.concatenate([layers[number][name] for layers in members]) for name in ("mean", "deviation")}
        for number in range(len(convolutions))
    ]


def _compute_member_statistics(
    row: Weights, convolutions: Sequence[Convolution], frames: np.ndarray
) -> list[Statistics]:
    """The statistics of one member's weights. Computed for it alone, so that they do not depend on the batch."""
    maps, found = [frame[np.newaxis] for frame in frames], []
    for convolve, activate in convolutions:
        maps = [convolve(row, each) for each in maps]
        together = np.concatenate(maps).astype(np.float64)
        deviation = np.sqrt(together.var(axis=(0, 2, 3)) + EPSILON)
        statistics = {"mean": together.mean(axis=(0, 2, 3)), "deviation": deviation}
        found.append({name: values[np.newaxis].astype(np.float32) for name, values in statistics.items()})
        for each in maps:
            _normalize(each, found[-1])
            activate(row, each)
    return found


def _normalize(maps: Maps, statistics: Statistics) -> None:
    maps -= statistics["mean"][:, :, np.newaxis, np.newaxis]
    maps /= statistics["deviation"][:, :, np.newaxis, np.newaxis]
