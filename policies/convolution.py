"""Convolutions in one compiled pass: with 2x2 max pooling for `policies.layers.conv_pool`, without for `conv`.

An image is first dealt out into planes, one for each remainder of row and column modulo a period: twice the stride
where outputs are pooled, the stride where they are not. Pixel (i, j) of the result then reads pixel (i + a, j + b) of
one plane for each weight ("tap") and each of the outputs that are pooled, with a and b fixed: a convolution with any
stride becomes sums of shifted planes, which run over neighbouring pixels in whole vectors, across the ends of rows.
Eight running sums stay in registers: two output channels of four outputs to pool, or four of two vectors of pixels.
Each pixel adds its taps in the order of the layout.
"""

import numpy as np
from numba import int64, njit, types, void

from policies.simd import LANES, load, maximum, multiply_add, store, unit_stride, zeros

_ROWS = types.Array(types.float32, 2, "A", readonly=True)
_IMAGES = types.Array(types.float32, 4, "A", readonly=True)
_OUTPUTS = types.Array(types.float32, 4, "C")


def pooled_size(length: int, size: int, stride: int) -> int:
    """Rows left of `length` after a valid convolution and 2x2 pooling; below 1 where there are too few."""
    return ((length - size) // stride + 1) // 2


def padded_size(length: int, size: int, stride: int, padding: int) -> int:
    """Rows left of `length` after a convolution with zeros around it; below 1 where there are too few."""
    return (length + 2 * padding - size) // stride + 1


@njit(nogil=True, cache=True)
def _tap_offsets(channels: int, size: int, stride: int, period: int, rows: int, columns: int) -> np.ndarray:
    """Where in the planes each tap (in layout order) starts, for the four outputs that are pooled: (taps, 4)."""
    offsets = np.empty((channels * size * size, 4), np.int64)
    for tap in range(len(offsets)):
        channel, tap_y, tap_x = tap // (size * size), tap // size % size, tap % size
        for part in range(4):
            y, x = tap_y + stride * (part // 2), tap_x + stride * (part % 2)
            plane = (channel * period + y % period) * period + x % period
            offsets[tap, part] = (plane * rows + y // period) * columns + x // period
    return offsets


@njit(nogil=True, cache=True)
def _deal_out(image: np.ndarray, period: int, padding: int, planes: np.ndarray) -> None:
    """Copies image (channels, height, width), `padding` from the edges, to planes (channels, period, period, ...)."""
    channels, height, width = image.shape
    for y in range(height):
        padded_y = y + padding
        for channel in range(channels):
            for phase in range(period):
                row = planes[channel, padded_y % period, phase, padded_y // period]
                first = max(0, padding - phase + period - 1) // period
                for i in range(first, (width + padding - phase + period - 1) // period):
                    row[i] = image[channel, y, i * period + phase - padding]


@njit(nogil=True, cache=True)
def _pooled_sums(planes: np.ndarray, offsets: np.ndarray, kernels: np.ndarray, pooled: np.ndarray) -> None:
    """Fills pooled (out_channels, pixels) from flat planes and flat kernels."""
    taps = len(offsets)
    for pixel in range(0, pooled.shape[1], LANES):
        for out_a in range(0, len(pooled), 2):
            out_b = min(out_a + 1, len(pooled) - 1)  # an odd last channel is computed twice
            kernel_a, kernel_b = kernels[out_a * taps :], kernels[out_b * taps :]
            a0, a1, a2, a3 = zeros(), zeros(), zeros(), zeros()
            b0, b1, b2, b3 = zeros(), zeros(), zeros(), zeros()
            for tap in range(taps):
                x0, x1 = load(planes, pixel + offsets[tap, 0]), load(planes, pixel + offsets[tap, 1])
                x2, x3 = load(planes, pixel + offsets[tap, 2]), load(planes, pixel + offsets[tap, 3])
                a, b = kernel_a[tap], kernel_b[tap]
                a0, a1 = multiply_add(a, x0, a0), multiply_add(a, x1, a1)
                a2, a3 = multiply_add(a, x2, a2), multiply_add(a, x3, a3)
                b0, b1 = multiply_add(b, x0, b0), multiply_add(b, x1, b1)
                b2, b3 = multiply_add(b, x2, b2), multiply_add(b, x3, b3)
            store(pooled[out_a], pixel, maximum(maximum(a0, a1), maximum(a2, a3)))
            store(pooled[out_b], pixel, maximum(maximum(b0, b1), maximum(b2, b3)))


@njit(void(_ROWS, int64, _IMAGES, int64, int64, _OUTPUTS), nogil=True, cache=True)
def conv_pool_kernel(
    weights: np.ndarray, start: int, images: np.ndarray, size: int, stride: int, outputs: np.ndarray
) -> None:
    """Fills outputs (members, out_channels, pooled height, pooled width); `layers.conv_pool` checks the arguments."""
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
                for j in range(pooled_width):
                    outputs[member, out, i, j] = pooled[out, i * columns + j]


@njit(nogil=True, cache=True)
def _sums(planes: np.ndarray, offsets: np.ndarray, kernels: np.ndarray, sums: np.ndarray) -> None:
    """Fills sums (out_channels, pixels in pairs of vectors) from flat planes and flat kernels."""
    taps, last = len(offsets), len(sums) - 1
    for pixel in range(0, sums.shape[1], 2 * LANES):
        for out_a in range(0, len(sums), 4):
            # where channels are no multiple of four the last ones are computed again
            out_b, out_c, out_d = min(out_a + 1, last), min(out_a + 2, last), min(out_a + 3, last)
            kernel_a, kernel_b = kernels[out_a * taps :], kernels[out_b * taps :]
            kernel_c, kernel_d = kernels[out_c * taps :], kernels[out_d * taps :]
            a0, a1, b0, b1 = zeros(), zeros(), zeros(), zeros()
            c0, c1, d0, d1 = zeros(), zeros(), zeros(), zeros()
            for tap in range(taps):
                start = pixel + offsets[tap]
                x0, x1 = load(planes, start), load(planes, start + LANES)
                a, b, c, d = kernel_a[tap], kernel_b[tap], kernel_c[tap], kernel_d[tap]
                a0, a1 = multiply_add(a, x0, a0), multiply_add(a, x1, a1)
                b0, b1 = multiply_add(b, x0, b0), multiply_add(b, x1, b1)
                c0, c1 = multiply_add(c, x0, c0), multiply_add(c, x1, c1)
                d0, d1 = multiply_add(d, x0, d0), multiply_add(d, x1, d1)
            store(sums[out_a], pixel, a0)
            store(sums[out_a], pixel + LANES, a1)
            store(sums[out_b], pixel, b0)
            store(sums[out_b], pixel + LANES, b1)
            store(sums[out_c], pixel, c0)
            store(sums[out_c], pixel + LANES, c1)
            store(sums[out_d], pixel, d0)
            store(sums[out_d], pixel + LANES, d1)


@njit(void(_ROWS, int64, int64, _IMAGES, int64, int64, int64, _OUTPUTS), nogil=True, cache=True)
def conv_kernel(
    weights: np.ndarray,
    start: int,
    bias_start: int,
    images: np.ndarray,
    size: int,
    stride: int,
    padding: int,
    outputs: np.ndarray,
) -> None:
    """Fills outputs (members, out_channels, height, width); `layers.conv` checks the arguments."""
    members, out_channels, out_height, out_width = outputs.shape
    _, channels, height, width = images.shape
    rows, columns = -(-(height + 2 * padding) // stride), -(-(width + 2 * padding) // stride)
    plane_pixels = channels * stride * stride * rows * columns
    flat_planes = np.zeros(plane_pixels + 2 * LANES, np.float32)  # the last vectors read past the last pixel
    planes = flat_planes[:plane_pixels].reshape((channels, stride, stride, rows, columns))
    vectors = 2 * -(-((out_height - 1) * columns + out_width) // (2 * LANES))
    sums = np.empty((out_channels, vectors * LANES), np.float32)
    offsets = _tap_offsets(channels, size, stride, stride, rows, columns)[:, 0].copy()
    for member in range(members):
        _deal_out(images[member], stride, padding, planes)
        row = unit_stride(weights[member])
        _sums(flat_planes, offsets, row[start : start + out_channels * len(offsets)], sums)
        for out in range(out_channels):
            bias = row[bias_start + out] if bias_start >= 0 else np.float32(0)
            for i in range(out_height):
                for j in range(out_width):
                    outputs[member, out, i, j] = sums[out, i * columns + j] + bias
