"""Imported files act like the reference's network, here a slow one that reads coefficients in that code's order."""

from importlib.util import find_spec
from itertools import pairwise

import numpy as np
import pytest
import torch
from torch.nn.functional import conv2d, max_pool2d

from hebbes.files.policy_file import read_policy_file
from hebbes.files.reference_coefficients import convert_reference_coefficients
from hebbes.files.torch_file import read_torch_table, swap_image_axes
from hebbes.options.command_line import parse_config
from hebbes.policies.hebbian import Hebbian, compute_synaptic_weights
from hebbes.programs.evaluate import refuse_reference_flags
from hebbes.programs.import_reference import ImportConfig, import_reference

CHANGES = {
    "ABCD_lr": lambda c, x, y: c[3] * (c[0] * x * y + c[1] * x + c[2] * y + c[4]),
    "AD": lambda c, x, y: c[0] * x * y + c[1],
}
WIDE, HIGH = 36, 28  # of images; the convolutions leave 8 x 3 x 2 features


def save_array(path, array):
    torch.save(array, path)
    return str(path)


def compute_features(kernels, image):
    """The features that the convolutions make of an image (height, width, channels), which the reference transposes."""
    maps = torch.tensor(image.transpose(2, 1, 0)[None], dtype=torch.float64)
    shapes = ((6, 3, 3, 3), (8, 6, 5, 5))
    for shape, stride, start in zip(shapes, (1, 2), (0, 162), strict=True):
        kernel = torch.tensor(kernels[start : start + np.prod(shape)].reshape(shape), dtype=torch.float64)
        maps = max_pool2d(torch.tanh(conv2d(maps, kernel, stride=stride)), 2)
    return maps.numpy().ravel()


def compute_slow_outputs(rule, coefficients, weights, inputs):
    """Raw outputs of every env step; the weights (out, in) of a layer are divided by their largest magnitude."""
    weights, outputs = [np.array(matrix, np.float64) for matrix in weights], []
    for values in inputs:
        activities = [values]
        for matrix in weights:
            outputs_now = matrix @ activities[-1]
            activities.append(np.tanh(outputs_now))
        activities[-1] = outputs_now
        outputs.append(outputs_now)
        offset = 0
        for matrix, (pre, post) in zip(weights, pairwise(activities), strict=True):
            for i, x in enumerate(pre):
                for j, y in enumerate(post):
                    matrix[j, i] += CHANGES[rule](coefficients[offset + len(post) * i + j], x, y)
            matrix /= np.abs(matrix).max()
            offset += len(pre) * len(post)
    return np.array(outputs)


def run_episode(policy, row, observations, state):
    return np.stack([policy.act(row[None], each[None], np.zeros(1, np.float32), state, {})[0] for each in observations])


@pytest.mark.parametrize("together", [True, False])
def test_images_are_transposed(tmp_path, together):
    rng = np.random.default_rng(0)
    policy = Hebbian((HIGH, WIDE, 3), 2, hidden_sizes=(4,), init_weights="coevolve")
    coefficients = rng.normal(size=(48 * 4 + 4 * 2, 5))
    kernels, first, second = rng.normal(size=1362), rng.normal(size=(4, 48)), rng.normal(size=(2, 4))
    initial = np.concatenate([first.ravel(), second.ravel()])
    if together:  # kernels before the coefficients
        files = np.concatenate([kernels, coefficients.ravel()]), initial
    else:
        files = coefficients, np.concatenate([kernels, initial])
    read = [
        read_torch_table(tmp_path / name) for name in ("a", "b") if save_array(tmp_path / name, files["ab".index(name)])
    ]
    row = swap_image_axes(convert_reference_coefficients(policy, *read), policy)
    images = rng.random((4, HIGH, WIDE, 3)).astype(np.float32)
    expected = compute_slow_outputs(
        "ABCD_lr", coefficients, [first, second], [compute_features(kernels, image) for image in images]
    )
    state = policy.initial_state(row[None], [rng], {})
    np.testing.assert_allclose(run_episode(policy, row, images, state), expected, rtol=1e-3, atol=1e-4)
    assert np.ptp(expected, axis=0).min() > 0.1


def import_arrays(tmp_path, hebb, coev=None, **options):
    options |= {"path_hebb": save_array(tmp_path / "hebb.dat", hebb), "output": str(tmp_path / "imported.dat")}
    if coev is not None:
        options["path_coev"] = save_array(tmp_path / "coev.dat", coev)
    return import_reference(ImportConfig(**options))


def test_a_file_for_vectors_acts_alike(tmp_path):
    rng = np.random.default_rng(1)
    coefficients = rng.normal(size=(4 * 32 + 32 * 16 + 16 * 2, 2)).astype(np.float32)
    said = import_arrays(tmp_path, coefficients, environment="CartPole-v1", hebb_rule="AD", hidden_sizes=(32, 16))
    assert f"evaluate_hebbian.py --path_weights {tmp_path / 'imported.dat'}" in said
    path = str(tmp_path / "imported.dat")
    assert f"train_hebbian.py --config {path} --init_from {path}" in said
    config = parse_config("hebbian", ["--config", path], "")
    assert (config.environment.id, config.policy_options["hebb_rule"]) == ("CartPole-v1", "AD")
    found = read_policy_file(tmp_path / "imported.dat")
    observations = rng.normal(size=(5, 4)).astype(np.float32)
    state = found.policy.initial_state(found.weights[None], [rng], {})
    start = [layer[0] for layer in compute_synaptic_weights(state)]
    expected = compute_slow_outputs("AD", coefficients, start, observations.astype(np.float64))
    np.testing.assert_allclose(
        run_episode(found.policy, found.weights, observations, state), expected, rtol=1e-3, atol=1e-4
    )


def test_files_of_car_racing_are_recognized_by_their_sizes(tmp_path):
    rng = np.random.default_rng(2)
    kernels, coefficients = rng.normal(size=1362).astype(np.float32), rng.normal(size=(91_328, 5)).astype(np.float32)
    apart, together = tmp_path / "apart", tmp_path / "together"
    for folder in (apart, together):
        folder.mkdir()
    import_arrays(apart, coefficients, kernels, environment="CarRacing-v0")
    import_arrays(together, np.concatenate([kernels, coefficients.ravel()]), environment="CarRacing-v0")
    one, two = (read_policy_file(folder / "imported.dat") for folder in (apart, together))
    assert np.array_equal(one.weights, two.weights)
    assert (one.environment.environment, one.action_head, len(one.weights)) == ("CarRacing-v3", "tanh_sigmoid", 458_002)


@pytest.mark.parametrize(
    ("hebb", "coev", "options", "message"),
    [
        (
            np.zeros((672, 5)),
            None,
            {"hebb_rule": "AD"},
            r"hebb.dat: coefficients: got shape \(672, 5\), AD takes \(672, 2\)",
        ),
        (np.zeros((671, 5)), None, {}, r"got shape \(671, 5\), ABCD_lr takes \(672, 5\)"),
        (np.zeros((5, 672)), None, {}, r"got shape \(5, 672\)"),
        (np.zeros((672, 5)), None, {"hidden_sizes": (8,)}, r"takes \(48, 5\)"),
        (np.zeros((672, 5)), np.zeros(3), {}, "coev.dat: path_coev: got 3 numbers, the network has 0"),
        (np.zeros((672, 5)), None, {"init_weights": "coevolve"}, "path_coev: got 0 numbers, the network has 672"),
        (np.zeros((672, 5), int), None, {}, "hebb.dat: holds something other than a NumPy array, one row or table"),
        ({"coefficients": 1}, None, {}, "something other than a NumPy array, one row or table"),
    ],
)
def test_coefficients_of_another_rule_or_network_are_refused(tmp_path, hebb, coev, options, message):
    with pytest.raises(ValueError, match=message):
        import_arrays(tmp_path, hebb, coev, **{"environment": "CartPole-v1", "hidden_sizes": (32, 16), **options})
    assert not (tmp_path / "imported.dat").exists()


@pytest.mark.skipif(find_spec("pybullet") is None, reason="PyBullet is not installed")
def test_how_weights_learned_must_be_said_for_a_robot_without_conventions(tmp_path):
    with pytest.raises(ValueError, match=r"for ReacherBulletEnv-v0: .*, for its learning, --normalization and --out"):
        import_arrays(tmp_path, np.zeros((9 * 128 + 128 * 64 + 64 * 2, 5)), environment="ReacherBulletEnv-v0")


def test_missing_options_and_existing_outputs_are_refused(tmp_path):
    with pytest.raises(ValueError, match="environment must be given"):
        ImportConfig(path_hebb="a", output="b")
    (tmp_path / "imported.dat").write_text("precious")
    with pytest.raises(ValueError, match=r"imported.dat exists already"):
        import_arrays(tmp_path, np.zeros((672, 5)), environment="CartPole-v1")


def test_the_references_flags_of_evaluation_are_refused_with_the_commands_to_give():
    refuse_reference_flags(["--path_weights", "best.dat"])
    with pytest.raises(ValueError, match=r"python -m hebbes import --path-hebb 'a b' --hebb_rule AD --output"):
        refuse_reference_flags(["--path-hebb", "a b", "--hebb_rule", "AD"])
