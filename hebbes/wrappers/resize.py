"""Resize: images shrink by averaging areas, as OpenCV's INTER_AREA and Gymnasium's ResizeObservation do.

An output pixel is the mean of the rectangle that it covers in the input. Pixels at the edges of the rectangle count in
proportion to the part that it covers. Rows are mixed first, then columns, which gives the same mean.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Int64, UInt, UInt32

from hebbes.contracts.option import option
from hebbes.wrappers.base import Observations, ObservationWrapper
from hebbes.wrappers.spaces import make_box, require_uint8_images

WEIGHT_ONE = 4096
"""The sum of the weights of a pixel: 2**12, as the kernel needs it."""


@dataclass(eq=False, kw_only=True)
class Resize(ObservationWrapper):
    """(H, W, channels) uint8 -> (*size, channels) uint8. Neither side may grow.

    The kernel takes a sixth of OpenCV's time for CarRacing's 96x96 -> 84x84 and differs by one gray level at most. Its
    integer arithmetic gives the same bits on every machine. It releases the interpreter lock.
    """

    size: tuple[int, int] | None = option(
        None,
        "height and width, in pixels, to shrink images to (default: 84 84 if images are larger)",
        range=">= 1",
        flag="resize",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        old_height, old_width, channels = require_uint8_images(self.env, "resize")
        height, width = self.size or (old_height, old_width)
        if height > old_height or width > old_width:
            raise ValueError(f"resize only shrinks: got {[height, width]} for images of {[old_height, old_width]}")
        from hebbes.simd import LANES
        from hebbes.wrappers.kernels.area_mean import mix_areas

        self._mix = mix_areas
        self._lines = (old_height, old_width * channels)
        self._shape = (height, width, channels)
        self.observation_space = make_box(0, 255, self._shape, dtype=np.uint8)
        self._first_rows, self._row_weights = compute_area_taps(old_height, height)
        first_columns, weights = compute_area_taps(old_width, width)
        from_every_column = np.zeros((len(weights), old_width), np.uint32)
        from_every_column[:, first_columns] = weights
        self._value_weights = np.repeat(from_every_column, channels, axis=1)
        first_values = first_columns[:, np.newaxis] * channels + np.arange(channels, dtype=np.uintp)
        self._copies = cut_into_vectors(first_values.ravel(), LANES)

    def transform(self, observations: Observations) -> Observations:
        """The area means of every image, in a new array."""
        height, width, channels = self._shape
        images = observations.reshape(len(observations), *self._lines)
        shrunk = np.empty((len(images), height, width * channels), np.uint8)
        weights = self._row_weights, self._value_weights
        self._mix(images, self._first_rows, *weights, channels, self._copies, shrunk)
        return shrunk.reshape(-1, *self._shape)


def compute_area_taps(old: int, new: int) -> tuple[UInt[np.ndarray, " new"], UInt32[np.ndarray, "taps new"]]:
    """For each of `new` pixels of a line: the first of the `old` pixels that it averages, and the weights of these.

    The others follow the first. No two areas begin at the same pixel. Weights are in units of 1/4096, and those of a
    pixel add up to 4096. Those of pixels past the end of the line are 0.
    """
    target, source = np.arange(new)[:, np.newaxis], np.arange(old)
    # in units of 1/(old * new) of the line, where every edge is a whole number
    overlap = np.minimum((target + 1) * old, (source + 1) * new) - np.maximum(target * old, source * new)
    overlap = np.maximum(overlap, 0)
    shares = np.rint(np.cumsum(overlap, axis=1) * (WEIGHT_ONE / old)).astype(np.int64)
    weights = np.diff(shares, axis=1, prepend=0)
    first, taps = (overlap > 0).argmax(axis=1), (overlap > 0).sum(axis=1).max()
    chosen = np.take_along_axis(np.pad(weights, ((0, 0), (0, taps))), first[:, np.newaxis] + np.arange(taps), axis=1)
    # unsigned, because Numba tests whether signed indices are negative
    return first.astype(np.uintp), np.ascontiguousarray(chosen.T, np.uint32)


def cut_into_vectors(places: UInt[np.ndarray, " values"], lanes: int) -> Int64[np.ndarray, "copies 2"]:
    """Copies of `lanes` neighbors each that bring the values at ascending `places` into a row without gaps.

    Each copy is (where its vector begins, where it goes in the row).
    """
    copies: list[tuple[int, int]] = []
    for number, place in enumerate(places.tolist()):
        source, target = copies[-1] if copies else (0, -lanes)
        offset = number - target
        if offset >= lanes or place - source != offset:
            copies.append((place, number))
    return np.array(copies, np.int64)
