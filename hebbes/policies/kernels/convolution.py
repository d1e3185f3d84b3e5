"""Compiled convolutions: with 2x2 max pooling for `hebbes.policies.layers.conv_pool`, without it for `conv`.

First, the pixels of an image are distributed to planes, one plane for each remainder of row and column modulo a period.
The period is twice the stride with pooling, else the stride. Pixel (i, j) of the result then reads pixel (i + a, j + b)
of one plane for each weight ("tap") and for each of the outputs that are pooled, with constant a and b. A convolution
with any stride thus becomes a sum of shifted planes, computed in whole vectors of neighboring pixels, across the ends
of rows. Running sums stay in registers: three output channels of four outputs to pool, or a tile of output channels by
three vectors of pixels. Each pixel adds its taps in the order of the layout, to the bias if there is one.
"""

import numpy as np
from numba import int64, types, void

from hebbes.compilation import njit
from hebbes.simd import (
    LANES,
    TILE_ROWS,
    broadcast,
    copy_every_second,
    copy_some,
    load,
    maximum,
    multiply_add,
    store,
    tile_add,
    tile_of,
    tile_store,
    unit_stride,
    zeros,
)

_ROW = types.Array(types.float32, 1, "C", readonly=True)
_ROWS = types.Array(types.float32, 2, "A", readonly=True)
_CONTIGUOUS_IMAGES = types.Array(types.float32, 4, "C", readonly=True)
_IMAGES = types.Array(types.float32, 4, "A", readonly=True)
_OUTPUTS = types.Array(types.float32, 4, "C")


@njit(nogil=True, cache=True)
def _tap_offsets(channels: int, size: int, stride: int, period: int, rows: int, columns: int) -> np.ndarray:
    """Offset in the planes of each tap (in layout order) for the four outputs that are pooled: (taps, 4)."""
    offsets = np.empty((channels, size, size, 4), np.int64)
    for tap_y in range(size):
        for tap_x in range(size):
            for part in range(4):
                y, x = tap_y + stride * (part // 2), tap_x + stride * (part % 2)
                start = ((y % period * period + x % period) * rows + y // period) * columns + x // period
                for channel in range(channels):
                    offsets[channel, tap_y, tap_x, part] = channel * period * period * rows * columns + start
    return offsets.reshape((channels * size * size, 4))


@njit(nogil=True, cache=True)
def _deal_out(image: np.ndarray, period: int, padding: int, planes: np.ndarray) -> None:
    """Copies image (channels, height, width), `padding` from the edges, to planes (channels, period, period, ...)."""
    for phase_y in range(period):
        top = max(0, padding - phase_y + period - 1) // period  # row of the plane with pixels of the image
        for phase_x in range(period):
            left = max(0, padding - phase_x + period - 1) // period  # and column
            y, x = top * period + phase_y - padding, left * period + phase_x - padding
            pixels, plane = image[:, y::period, x::period], planes[:, phase_y, phase_x, top:, left:]
            for channel in range(pixels.shape[0]):
                for i in range(pixels.shape[1]):
                    row, from_row = plane[channel, i], pixels[channel, i]
                    for j in range(len(from_row)):
                        row[j] = from_row[j]


@njit(nogil=True, cache=True)
def _pooled_sums(planes: np.ndarray, offsets: np.ndarray, kernels: np.ndarray, pooled: np.ndarray) -> None:
    """Fills pooled (out_channels, pixels) from flat planes and flat kernels."""
    taps, (out_channels, pixels), sums = len(offsets), pooled.shape, pooled.reshape(pooled.size)
    for pixel in range(0, pixels, LANES):
        for out in range(0, out_channels, 3):
            # the last channel fills up the last three
            out_a, out_b, out_c = out, min(out + 1, out_channels - 1), min(out + 2, out_channels - 1)
            a0, a1, a2, a3 = zeros(), zeros(), zeros(), zeros()
            b0, b1, b2, b3 = zeros(), zeros(), zeros(), zeros()
            c0, c1, c2, c3 = zeros(), zeros(), zeros(), zeros()
            for tap in range(taps):
                a, b = broadcast(kernels, out_a * taps + tap), broadcast(kernels, out_b * taps + tap)
                c = broadcast(kernels, out_c * taps + tap)
                x = load(planes, pixel + offsets[tap, 0])
                a0, b0, c0 = multiply_add(a, x, a0), multiply_add(b, x, b0), multiply_add(c, x, c0)
                x = load(planes, pixel + offsets[tap, 1])
                a1, b1, c1 = multiply_add(a, x, a1), multiply_add(b, x, b1), multiply_add(c, x, c1)
                x = load(planes, pixel + offsets[tap, 2])
                a2, b2, c2 = multiply_add(a, x, a2), multiply_add(b, x, b2), multiply_add(c, x, c2)
                x = load(planes, pixel + offsets[tap, 3])
                a3, b3, c3 = multiply_add(a, x, a3), multiply_add(b, x, b3), multiply_add(c, x, c3)
            store(sums, out_a * pixels + pixel, maximum(maximum(a0, a1), maximum(a2, a3)))
            store(sums, out_b * pixels + pixel, maximum(maximum(b0, b1), maximum(b2, b3)))
            store(sums, out_c * pixels + pixel, maximum(maximum(c0, c1), maximum(c2, c3)))


@njit(void(_ROWS, int64, _IMAGES, int64, int64, _OUTPUTS), nogil=True, cache=True)
def conv_pool_kernel(
    weights: np.ndarray, start: int, images: np.ndarray, size: int, stride: int, outputs: np.ndarray
) -> None:
    """Fills outputs (members, out_channels, pooled height, pooled width). `layers.conv_pool` checks the arguments."""
    members, out_channels, pooled_height, pooled_width = outputs.shape
    _, channels, height, width = images.shape
    period = 2 * stride
    rows, columns = -(-height // period), -(-width // period)
    plane_pixels = channels * period * period * rows * columns
    flat_planes = np.zeros(plane_pixels + LANES, np.float32)  # the last vector reads past the last pixel
    planes = flat_planes[:plane_pixels].reshape((channels, period, period, rows, columns))
    vectors = -(-((pooled_height - 1) * columns + pooled_width) // LANES)
    pooled = np.empty((out_channels, vectors * LANES), np.float32)
    offsets = _tap_offsets(channels, size, stride, period, rows, columns)
    for member in range(members):
        _deal_out(images[member], period, 0, planes)
        kernels = unit_stride(weights[member])[start : start + out_channels * len(offsets)]
        _pooled_sums(flat_planes, offsets, kernels, pooled)
        for out in range(out_channels):
            for i in range(pooled_height):
                row, sums = outputs[member, out, i], pooled[out, i * columns :]
                for j in range(pooled_width):
                    row[j] = sums[j]


@njit(nogil=True, cache=True)
def _deal_in_two(image: np.ndarray, padding: int, rows: int, columns: int, planes: np.ndarray) -> None:
    """Does the work of `_deal_out` for a period of two and a contiguous image, in flat planes that start at zero.

    It writes whole vectors, in the order of the planes: the next row overwrites the zeros past the end of a row.
    """
    channels, height, width = image.shape
    pixels = image.reshape(image.size)
    for plane in range(4 * channels):
        channel, phase_y, phase_x = plane // 4, plane // 2 % 2, plane % 2
        first = (padding + 1 - phase_x) // 2  # column of the plane with pixels of the image
        left = 2 * first + phase_x - padding
        for i in range((padding + 1 - phase_y) // 2, (height + padding + 1 - phase_y) // 2):
            row = (channel * height + 2 * i + phase_y - padding) * width
            start = (plane * rows + i) * columns + first
            for x in range(left, width, 2 * LANES):
                copy_every_second(pixels, row + x, width - x, planes, start + (x - left) // 2)


@njit(nogil=True, cache=True)
def _sums(planes: np.ndarray, offsets: np.ndarray, kernels: np.ndarray, biases: np.ndarray, sums: np.ndarray) -> None:
    """Fills flat sums (out_channels, pixels), which consist of whole tiles, from flat planes and flat kernels."""
    taps, pixels = len(offsets), len(sums) // len(biases)
    whole = pixels - pixels % (3 * LANES)
    for out in range(0, len(biases), TILE_ROWS):
        for pixel in range(0, whole, 3 * LANES):
            tile = tile_of(biases, out, (0, 0, 0))
            for tap in range(taps):
                start = pixel + offsets[tap]
                starts = start, start + LANES, start + 2 * LANES
                tile = tile_add(tile, kernels, out * taps + tap, taps, planes, starts)
            tile_store(tile, sums, out * pixels + pixel, pixels)
        for pixel in range(whole, pixels, LANES):
            one = tile_of(biases, out, (0,))
            for tap in range(taps):
                one = tile_add(one, kernels, out * taps + tap, taps, planes, (pixel + offsets[tap],))
            tile_store(one, sums, out * pixels + pixel, pixels)


@njit(nogil=True, cache=True)
def _add(left: np.ndarray, right: np.ndarray, sums: np.ndarray) -> None:
    for i in range(len(left)):
        sums[i] = left[i] + right[i]


@njit(void(_ROWS, int64, int64, _ROW, _CONTIGUOUS_IMAGES, int64, int64, int64, _OUTPUTS), nogil=True, cache=True)
def conv_kernel(
    weights: np.ndarray,
    start: int,
    bias_start: int,
    shared: np.ndarray,
    images: np.ndarray,
    size: int,
    stride: int,
    padding: int,
    outputs: np.ndarray,
) -> None:
    """Fills outputs (members, out_channels, height, width). `layers.conv` checks the arguments.

    A member's kernels and biases are those in its row of weights plus `shared` (kernels first, then biases).
    """
    members, out_channels, out_height, out_width = outputs.shape
    _, channels, height, width = images.shape
    rows, columns = -(-(height + 2 * padding) // stride), -(-(width + 2 * padding) // stride)
    plane_pixels = channels * stride * stride * rows * columns
    flat_planes = np.zeros(plane_pixels + LANES, np.float32)  # the last vector reads past the last pixel
    planes = flat_planes[:plane_pixels].reshape((channels, stride, stride, rows, columns))
    pixels = -(-((out_height - 1) * columns + out_width) // LANES) * LANES
    offsets = _tap_offsets(channels, size, stride, stride, rows, columns)[:, 0].copy()
    num_weights, tiled = out_channels * len(offsets), -(-out_channels // TILE_ROWS) * TILE_ROWS
    kernels, biases = np.zeros(tiled * len(offsets), np.float32), np.zeros(tiled, np.float32)
    sums = np.empty(tiled * pixels, np.float32)
    for member in range(members):
        if stride == 2:
            _deal_in_two(images[member], padding, rows, columns, flat_planes)
        else:
            _deal_out(images[member], stride, padding, planes)
        row, output = unit_stride(weights[member]), outputs[member].reshape(outputs[member].size)
        _add(row[start : start + num_weights], shared[:num_weights], kernels)
        if bias_start >= 0:
            _add(row[bias_start : bias_start + out_channels], shared[num_weights:], biases)
        _sums(flat_planes, offsets, kernels, biases, sums)
        for out in range(out_channels):
            for i in range(out_height):
                for j in range(0, out_width, LANES):
                    pixel, to = out * pixels + i * columns + j, (out * out_height + i) * out_width + j
                    copy_some(sums, pixel, out_width - j, output, to)
