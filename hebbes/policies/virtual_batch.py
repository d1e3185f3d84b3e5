"""Virtual batch normalisation: each channel is standardised by its mean and deviation over a fixed reference batch.

Salimans et al. 2016, "Improved Techniques for Training GANs", arXiv 1606.03498, sec. 3.5; for evolution strategies,
where it makes perturbed networks act differently, Salimans et al. 2017, arXiv 1703.03864, sec. 2.2. The reference batch
is a buffer, `virtual_batch`; its statistics are a member's own, computed with its weights when an episode begins.

Departures from the 2016 paper: an observation does not join the batch that normalises it, so that the statistics are
those of the reference batch alone; there is no gain; a layer's biases, where it has them, are added after
normalisation. Where a layer pools, its maxima are standardised. Both papers average over pixels too, and so is it here.
"""

from collections.abc import Callable, Sequence
from numbers import Integral
from typing import TypeAlias

import numpy as np
from jaxtyping import Float32

from hebbes.contracts.policy import Buffers, Weights
from hebbes.policies.base import SizedPolicy

Maps: TypeAlias = Float32[np.ndarray, "members channels height width"]
Statistics: TypeAlias = dict[str, Float32[np.ndarray, "members channels"]]
"""A layer's "mean" and "deviation"."""
Convolution: TypeAlias = tuple[Callable[[Weights, Maps], Maps], Callable[[Weights, Maps], None]]
"""What makes a layer's pre-activations from maps, and what then activates them in place."""

EPSILON = np.float32(1e-3)
"""Added to the variance, so that a channel that is the same everywhere does not divide by zero."""


def check_virtual_batch(virtual_batch: int) -> None:
    """Refuses what is no number of frames."""
    if isinstance(virtual_batch, bool) or not isinstance(virtual_batch, Integral) or virtual_batch < 0:
        raise ValueError(f"virtual_batch: got {virtual_batch!r}, must be an integer of at least 0")


def reference_frames(
    policy: SizedPolicy, num_frames: int, buffers: Buffers
) -> Float32[np.ndarray, "frames channels height width"]:
    """The reference batch as the network takes it, channels first; ValueError if the buffers do not hold it."""
    expected = (num_frames, *policy.observation_shape)
    found = buffers["virtual_batch"].shape if "virtual_batch" in buffers else None
    if found != expected:
        raise ValueError(f"virtual_batch: the buffers must hold frames of shape {expected}, got {found}")
    return np.moveaxis(policy.inputs(buffers["virtual_batch"], buffers), -1, 1)


def convolved(
    weights: Weights, convolutions: Sequence[Convolution], maps: Maps, statistics: Sequence[Statistics] | None
) -> Maps:
    """What the layers make of images, standardised where there are statistics, one entry a layer."""
    for number, (convolve, activate) in enumerate(convolutions):
        maps = convolve(weights, maps)
        if statistics is not None:
            _standardise(maps, statistics[number])
        activate(weights, maps)
    return maps


def reference_statistics(
    weights: Weights, convolutions: Sequence[Convolution], frames: Float32[np.ndarray, "frames channels height width"]
) -> list[Statistics]:
    """Each member's statistics, layer by layer, with the layers before it normalised already."""
    members = [_of_member(weights[np.array([k])], convolutions, frames) for k in range(len(weights))]
    return [
        {name: np.concatenate([layers[number][name] for layers in members]) for name in ("mean", "deviation")}
        for number in range(len(convolutions))
    ]


def _of_member(row: Weights, convolutions: Sequence[Convolution], frames: np.ndarray) -> list[Statistics]:
    """The statistics of one row of weights: a member's alone, so that they do not depend on who shares the batch."""
    maps, found = [frame[np.newaxis] for frame in frames], []
    for convolve, activate in convolutions:
        maps = [convolve(row, each) for each in maps]
        together = np.concatenate(maps).astype(np.float64)
        mean, variance = together.mean(axis=(0, 2, 3)), together.var(axis=(0, 2, 3))
        found.append(
            {
                "mean": mean[np.newaxis].astype(np.float32),
                "deviation": np.sqrt(variance + EPSILON)[np.newaxis].astype(np.float32),
            }
        )
        for each in maps:
            _standardise(each, found[-1])
            activate(row, each)
    return found


def _standardise(maps: Maps, statistics: Statistics) -> None:
    maps -= statistics["mean"][:, :, np.newaxis, np.newaxis]
    maps /= statistics["deviation"][:, :, np.newaxis, np.newaxis]
