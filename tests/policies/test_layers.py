import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn.functional import conv2d, max_pool2d

from hebbes.contracts.policy import Layout
from hebbes.policies.activations import ACTIVATIONS, apply_activation
from hebbes.policies.layers import compute_dense_shapes, conv, conv_pool, dense, linear
from tests.shape_checks import unchecked


def _draw_weights(layout, members, seed=0):
    return np.random.default_rng(seed).standard_normal((members, layout.num_params)).astype(np.float32)


def test_linear_by_hand():
    layout = Layout({"skipped": (1,), "matrix": (2, 3), "offset": (2,)})
    weights = np.array([[9, 1, 2, 3, 4, 5, 6, 10, 20], [9, 0, 0, 1, 0, 1, 0, -1, -2]], np.float32)
    inputs = np.array([[1, 0, -1], [3, 4, 5]], np.float32)
    assert linear(weights, layout, "matrix", inputs).tolist() == [[-2, -2], [5, 4]]
    assert linear(weights, layout, "matrix", inputs, "offset").tolist() == [[8, 18], [4, 2]]


@pytest.mark.parametrize(("num_inputs", "num_outputs"), [(1, 1), (17, 64), (64, 6), (648, 128)])
def test_linear_against_float64(num_inputs, num_outputs):
    layout = Layout({"matrix": (num_outputs, num_inputs), "offset": (num_outputs,)})
    weights = _draw_weights(layout, members=4)
    inputs = np.random.default_rng(1).standard_normal((4, num_inputs)).astype(np.float32)
    matrices, offsets = (layout.view(weights, name).astype(np.float64) for name in layout.shapes)
    expected = np.einsum("moi,mi->mo", matrices, inputs.astype(np.float64)) + offsets
    found = linear(weights, layout, "matrix", inputs, "offset")
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5 * np.sqrt(num_inputs))


@settings(max_examples=40)
@given(
    channels=st.sampled_from([1, 2, 3, 4, 12]),
    out_channels=st.integers(1, 9),
    size=st.integers(1, 5),
    stride=st.integers(1, 3),
    spare=st.tuples(st.integers(0, 25), st.integers(0, 25)),
    channels_last=st.booleans(),
)
def test_conv_pool_against_torch(channels, out_channels, size, stride, spare, channels_last):
    layout = Layout({"skipped": (5,), "kernels": (out_channels, channels, size, size)})
    weights = _draw_weights(layout, members=2)
    shape = (2, channels, *(size + stride + extra for extra in spare))
    images = np.random.default_rng(1).standard_normal(shape).astype(np.float32)
    if channels_last:  # same numbers, other strides
        images = np.moveaxis(np.moveaxis(images, 1, -1).copy(), -1, 1)
    kernels = torch.from_numpy(layout.view(weights, "kernels")).double()
    expected = [
        max_pool2d(conv2d(torch.from_numpy(image).double(), kernel, stride=stride), 2).numpy()
        for image, kernel in zip(images, kernels, strict=True)
    ]
    found = conv_pool(weights, layout, "kernels", images, stride)
    np.testing.assert_allclose(found, np.stack(expected), atol=1e-6 * np.sqrt(channels) * size * 10)


@settings(max_examples=40)
@given(
    channels=st.sampled_from([1, 2, 3, 32]),
    out_channels=st.integers(1, 9),
    size=st.integers(1, 5),
    stride=st.integers(1, 3),
    padding=st.integers(0, 3),
    spare=st.tuples(st.integers(0, 45), st.integers(0, 45)),
    biased=st.booleans(),
    channels_last=st.booleans(),
)
def test_conv_against_torch(channels, out_channels, size, stride, padding, spare, biased, channels_last):
    layout = Layout({"skipped": (5,), "kernels": (out_channels, channels, size, size), "offset": (out_channels,)})
    weights = _draw_weights(layout, members=2)
    height, width = (max(1, size - 2 * padding) + extra for extra in spare)
    image = np.random.default_rng(1).standard_normal((2, channels, height, width)).astype(np.float32)
    given = np.moveaxis(np.ascontiguousarray(np.moveaxis(image, 1, -1)), -1, 1) if channels_last else image
    found = conv(weights, layout, "kernels", given, stride=stride, padding=padding, bias="offset" if biased else None)
    kernels, offset = (torch.from_numpy(layout.view(weights, name)).double() for name in ("kernels", "offset"))
    for member in range(2):
        bias = offset[member] if biased else None
        expected = conv2d(torch.from_numpy(image[member : member + 1]).double(), kernels[member], bias, stride, padding)
        np.testing.assert_allclose(found[member : member + 1], expected.numpy(), atol=2e-4)


@pytest.mark.parametrize("stride", [1, 2, 3])
def test_conv_keeps_nan_in_its_member_and_its_pixels(stride):
    layout = Layout({"kernels": (9, 2, 3, 3)})
    weights = _draw_weights(layout, members=3)
    images = np.random.default_rng(1).standard_normal((3, 2, 37, 41)).astype(np.float32)
    alone = [conv(weights[m : m + 1], layout, "kernels", images[m : m + 1], stride=stride, padding=1) for m in range(3)]
    images[1, :, -1, -1] = np.nan
    found = conv(weights, layout, "kernels", images, stride=stride, padding=1)
    touched = np.zeros(found.shape, bool)
    touched[1] = np.isnan(conv2d(torch.from_numpy(images[1]), torch.ones(9, 2, 3, 3), stride=stride, padding=1).numpy())
    assert np.array_equal(np.isnan(found), touched)
    assert np.array_equal(found[~touched], np.concatenate(alone)[~touched])


@pytest.mark.parametrize("place", [(0, 0), (0, 1), (1, 0), (1, 1)])
def test_conv_pool_keeps_nan_at_every_place_of_the_pool(place):
    layout = Layout({"kernels": (1, 1, 1, 1)})
    image = np.zeros((1, 1, 2, 2), np.float32)
    image[0, 0][place] = np.nan
    assert np.isnan(conv_pool(np.ones((1, 1), np.float32), layout, "kernels", image, 1)).all()


def test_dense_by_hand():
    layout = Layout(compute_dense_shapes((2, 1, 1), bias=True))
    assert list(layout.shapes) == ["dense1", "dense1_bias", "dense2", "dense2_bias"]
    weights = np.array([[0.5, 0.25, -1, 2, 3]], np.float32)
    outputs = dense(weights, layout, np.array([[1, 4]], np.float32))
    assert outputs.item() == pytest.approx(2 * np.tanh(0.5) + 3, abs=1e-6)


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("sizes", [(3, 2), (17, 64, 64, 6), (5, 1, 40, 3, 7)])
def test_dense_has_the_bits_of_its_layers_one_by_one(sizes, bias, activation):
    layout = Layout({"skipped": (3,), **compute_dense_shapes(sizes, bias=bias)})
    weights = _draw_weights(layout, members=4)
    inputs = outputs = np.random.default_rng(1).standard_normal((4, sizes[0])).astype(np.float32)
    for number in range(1, len(sizes)):
        if number > 1:
            apply_activation(activation, outputs)
        name = f"dense{number}"
        outputs = linear(weights, layout, name, outputs, f"{name}_bias" if bias else None)
    assert np.array_equal(dense(weights, layout, inputs, activation), outputs)


@unchecked()
@pytest.mark.parametrize(
    ("shapes", "message"),
    [
        ({"dense1": (4, 3), "dense2": (2, 5)}, "dense2: its matrix takes inputs of size 5, the layer before has 4"),
        ({"other": (4, 3)}, "the layout has no dense1, only other"),
        ({"dense1": (4, 2)}, "dense1: got inputs of size 3, its matrix takes 2"),
    ],
)
def test_dense_refuses_layers_that_do_not_fit(shapes, message):
    layout = Layout(shapes)
    with pytest.raises(ValueError, match=message):
        dense(_draw_weights(layout, members=2), layout, np.zeros((2, 3), np.float32))


@unchecked()
def test_kernels_that_are_not_square_are_refused():
    layout = Layout({"kernels": (2, 1, 3, 5)})
    weights, images = _draw_weights(layout, members=1), np.zeros((1, 1, 12, 12), np.float32)
    for refused in (
        lambda: conv(weights, layout, "kernels", images, stride=1, padding=0),
        lambda: conv_pool(weights, layout, "kernels", images, stride=1),
    ):
        with pytest.raises(ValueError, match="kernels: kernels must be square, got 3 x 5"):
            refused()


@unchecked()
def test_refuses_wrong_arrays():
    layout = Layout({"matrix": (2, 3), "kernels": (1, 1, 3, 3)})
    weights, inputs = _draw_weights(layout, members=2), np.zeros((2, 3), np.float32)
    with pytest.raises(ValueError, match="matrix: got inputs of size 4, its matrix takes 3"):
        linear(weights, layout, "matrix", np.zeros((2, 4), np.float32))
    with pytest.raises(ValueError, match="rows must be contiguous float32"):
        linear(np.asfortranarray(weights), layout, "matrix", inputs)
    with pytest.raises(ValueError, match="rows must be contiguous float32, got float64"):
        linear(weights.astype(np.float64), layout, "matrix", inputs)
    for wrong in (inputs.astype(np.float64), np.asfortranarray(inputs)):
        with pytest.raises(ValueError, match="matrix: inputs must be contiguous float32, got float"):
            linear(weights, layout, "matrix", wrong)
    with pytest.raises(ValueError, match=r"got shape \(2, 14\), expected \(members, params\) = \(2, 15\)"):
        linear(weights[:, :-1], layout, "matrix", inputs)
    with pytest.raises(ValueError, match=r"expected \(members, params\) = \(3, 15\)"):
        linear(weights, layout, "matrix", np.zeros((3, 3), np.float32))
    with pytest.raises(ValueError, match="a height and width of at least 4"):
        conv_pool(weights, layout, "kernels", np.zeros((2, 1, 8, 3), np.float32), 1)
    with pytest.raises(ValueError, match="a height and width of at least 1"):
        conv(weights, layout, "kernels", np.zeros((2, 1, 8, 0), np.float32), stride=2, padding=1)
    with pytest.raises(ValueError, match="needs 1 channels"):
        conv(weights, layout, "kernels", np.zeros((2, 2, 8, 8), np.float32), stride=2, padding=1)
    with pytest.raises(ValueError, match="needs 1 channels"):
        conv_pool(weights, layout, "kernels", np.zeros((2, 2, 8, 8), np.float32), 1)
