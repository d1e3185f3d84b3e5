"""Files of torch.save: our networks act like the reference's with its weights. Other files are refused in one line."""

import io
import pickle
import zipfile
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from hebbes.files.torch_file import is_torch_file, read_torch_table, read_torch_weights
from hebbes.files.weight_file import WeightFileError
from hebbes.policies.cnn import CNN
from hebbes.policies.hebbian import Hebbian
from hebbes.policies.linear import Linear
from hebbes.policies.mlp import MLP
from tests.files.saved_policies import expect_refusal

NETWORK = MLP((3,), 2, hidden_sizes=(4,))  # 20 parameters
ROW = np.linspace(-1, 1, 20)


def write_torch_file(path, value, zipped=True):
    """Writes a file of torch.save, as a zip file or as the stream of pickles of versions before torch 1.6."""
    content = io.BytesIO()
    torch.save(value, content, _use_new_zipfile_serialization=zipped)
    path.write_bytes(content.getvalue())
    return path


def replace_bytes(path, *edits):
    """Replaces bytes of a file and returns its path. The file must contain the old bytes of each edit."""
    data = path.read_bytes()
    for old, new in edits:
        assert old in data
        data = data.replace(old, new)
    path.write_bytes(data)
    return path


def expect_torch_refusal(path, policy=NETWORK):
    with pytest.raises(WeightFileError) as error:
        read_torch_weights(path, policy)
    message = str(error.value)
    assert message.startswith(f"{path}: ")
    assert "\n" not in message
    return message.removeprefix(f"{path}: ")


def make_reference_cnn(features, hidden_sizes, outputs):
    """The convolutional network of the reference's section "Networks": no layer has biases."""
    sizes = (features, *hidden_sizes)
    dense = [
        part for a, b in zip(sizes, hidden_sizes, strict=False) for part in (nn.Linear(a, b, bias=False), nn.Tanh())
    ]
    return nn.Sequential(
        *(nn.Conv2d(3, 6, 3, bias=False), nn.Tanh(), nn.MaxPool2d(2)),
        *(nn.Conv2d(6, 8, 5, stride=2, bias=False), nn.Tanh(), nn.MaxPool2d(2), nn.Flatten()),
        *(*dense, nn.Linear(sizes[-1], outputs, bias=False)),
    )


def save_and_load(tmp_path, network, policy, zipped):
    row = nn.utils.parameters_to_vector(network.parameters()).detach().numpy()
    path = write_torch_file(tmp_path / "reference.dat", row, zipped)
    assert is_torch_file(path)
    return read_torch_weights(path, policy)


def compute_outputs(policy, weights, observations):
    rows = np.repeat(weights[np.newaxis], len(observations), axis=0)
    return policy.act(rows, observations, np.zeros(len(observations), np.float32), None, {})


@pytest.mark.parametrize("zipped", [True, False])
@pytest.mark.parametrize(
    ("height", "width", "hidden_sizes", "features", "num_params"),
    [(84, 84, (128, 64), 648, 92_690), (84, 60, (7,), 8 * 9 * 6, None)],
)
def test_the_references_cnn_acts_alike(tmp_path, zipped, height, width, hidden_sizes, features, num_params):
    torch.manual_seed(0)
    network = make_reference_cnn(features, hidden_sizes, 3)
    policy = CNN((height, width, 3), 3, hidden_sizes=hidden_sizes)
    weights = save_and_load(tmp_path, network, policy, zipped)
    assert num_params in (None, len(weights))
    images = np.random.default_rng(0).random((5, height, width, 3), np.float32)
    with torch.no_grad():
        expected = network(torch.tensor(images).permute(0, 3, 2, 1)).numpy()  # axes (channel, width, height)
    np.testing.assert_allclose(compute_outputs(policy, weights, images), expected, atol=2e-6)
    assert np.ptp(expected, axis=0).min() > 1e-4  # the images give outputs that differ by more than rounding


@pytest.mark.parametrize("zipped", [True, False])
def test_the_references_mlp_acts_alike(tmp_path, zipped):
    torch.manual_seed(0)
    parts = [nn.Linear(28, 128, bias=False), nn.Tanh(), nn.Linear(128, 64, bias=False), nn.Tanh()]
    network = nn.Sequential(*parts, nn.Linear(64, 8, bias=False))
    policy = MLP((28,), 8)
    weights = save_and_load(tmp_path, network, policy, zipped)
    observations = np.random.default_rng(0).normal(size=(6, 28)).astype(np.float32)
    with torch.no_grad():
        expected = network(torch.tensor(observations)).numpy()
    np.testing.assert_allclose(compute_outputs(policy, weights, observations), expected, atol=2e-6)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("edits", [(), [(b"numpy._core", b"numpy.core")], [(b"\x89\x88\x87", b"K\x00K\x01\x87")]])
def test_rows_of_either_float_and_any_numpy_are_read(tmp_path, dtype, edits):
    # numpy 1 has its core in numpy.core, and numpy before 1.19 pickled a type's flags as whole numbers
    path = replace_bytes(write_torch_file(tmp_path / "old.dat", ROW.astype(dtype), zipped=False), *edits)
    weights = read_torch_weights(path, NETWORK)
    assert weights.dtype == np.float32
    np.testing.assert_array_equal(weights, ROW.astype(np.float32))


@pytest.mark.parametrize("zipped", [True, False])
@pytest.mark.parametrize(
    ("value", "message"),
    [
        (ROW[:19], "holds numbers of shape (19,), but the policy has 20 parameters"),
        (
            np.arange(20),
            "holds something other than a NumPy array, one row or table of little-endian float32 or float64",
        ),
        (ROW.astype(np.float16), "holds something other"),
        (ROW.astype(">f8"), "holds something other"),
        (ROW.astype(complex), "holds something other"),
        (np.where(ROW > 0, np.nan, ROW), "not finite"),
        (ROW * 1e300, "not finite in float32"),
        (ROW.astype(object), "holds something other"),
        (ROW.reshape(4, 5), "holds numbers of shape (4, 5)"),
        (list(ROW), "holds something other"),
        ({"weights": ROW}, "holds something other"),
        (np.float64(1), "holds something other"),
        (None, "holds something other"),
        (np.rec.array([(1.0,)]), "holds something other"),
    ],
)
def test_other_contents_are_refused(tmp_path, value, message, zipped):
    assert message in expect_torch_refusal(write_torch_file(tmp_path / "foreign.dat", value, zipped))


def test_tensors_are_refused_with_one_line(tmp_path):
    assert "holds something other" in expect_torch_refusal(write_torch_file(tmp_path / "tensor.dat", torch.zeros(20)))
    assert "not a file that torch.save wrote" in expect_torch_refusal(
        write_torch_file(tmp_path / "old.dat", torch.zeros(20), zipped=False)
    )


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        (Linear((3,), 2), "weights of an mlp or cnn without biases, not of Linear("),
        (MLP((3,), 2, bias=True), "weights of an mlp or cnn without biases, not of MLP("),
        (Hebbian((3,), 2), "`hebbes import` makes a policy file of learning rules"),
        (MLP((3,), 2), "holds numbers of shape (20,), but the policy has 8704 parameters"),
    ],
)
def test_policies_that_the_reference_lacks_are_refused(tmp_path, policy, message):
    assert message in expect_torch_refusal(write_torch_file(tmp_path / "row.dat", ROW), policy)


def test_load_policy_says_what_a_file_of_torch_needs(tmp_path):
    for zipped in (True, False):
        assert expect_refusal(write_torch_file(tmp_path / "row.dat", ROW, zipped)) == (
            "written by torch.save, which keeps only numbers: `hebbes import` makes a policy file of learning rules, "
            "and evaluate_static and compare play others, with --environment and --policy"
        )


@pytest.mark.parametrize("zipped", [True, False])
@pytest.mark.parametrize("shape", [(20,), (4, 5), (20, 1)])
def test_tables_are_read_as_they_are(tmp_path, zipped, shape):
    path = write_torch_file(tmp_path / "table.dat", ROW.reshape(shape), zipped)
    np.testing.assert_array_equal(read_torch_table(path), ROW.reshape(shape).astype(np.float32))


@pytest.mark.parametrize(
    ("value", "edits"),
    [
        (ROW.reshape(2, 2, 5), ()),
        (np.asfortranarray(ROW.reshape(4, 5)), ()),
        (np.empty((0, 5)), ()),
        (ROW.reshape(4, 5), [(b"K\x04K\x05\x86", b"J\xfc\xff\xff\xffJ\xfb\xff\xff\xff\x86")]),  # -4 and -5
        (ROW.reshape(4, 5), [(b"K\x04K\x05\x86", b"K\x04K\x06\x86")]),
        (ROW.reshape(20, 1), [(b"K\x14K\x01\x86", b"K\x14\x88\x86")]),  # True for 1
    ],
)
def test_other_tables_are_refused(tmp_path, value, edits):
    path = replace_bytes(write_torch_file(tmp_path / "odd.dat", value, zipped=False), *edits)
    with pytest.raises(WeightFileError, match=r"one row or table|cannot reshape"):
        read_torch_table(path)


def test_other_files_are_not_taken_for_files_of_torch(tmp_path):
    with zipfile.ZipFile(tmp_path / "other.dat", "w") as archive:
        archive.writestr("weights.npy", b"")
    (tmp_path / "bare.dat").write_bytes(pickle.dumps(ROW, 2))
    np.savez(tmp_path / "arrays.npz", ROW)
    for name in ("other.dat", "bare.dat", "arrays.npz", "missing.dat", "."):
        assert not is_torch_file(tmp_path / name)
    assert expect_torch_refusal(tmp_path / "missing.dat") == "no such file"
    assert expect_torch_refusal(tmp_path / "bare.dat") == "not a file that torch.save wrote from an array, or truncated"


def write_zip(path, records, **options):
    with zipfile.ZipFile(path, "w", **options) as archive:
        for name, content in records:
            archive.writestr(name, content)
    return path


PICKLED = pickle.dumps(ROW, 2)


@pytest.mark.parametrize(
    ("records", "compression", "message"),
    [
        ([("a/data.pkl", PICKLED)], zipfile.ZIP_DEFLATED, "compressed records"),
        ([("a/data.pkl", PICKLED), ("b/data.pkl", PICKLED)], zipfile.ZIP_STORED, "torch.save did not write"),
        ([("a/weights", PICKLED)], zipfile.ZIP_STORED, "torch.save did not write"),
        ([("a/data.pkl", PICKLED)] + [(f"a/{k}", b"") for k in range(64)], zipfile.ZIP_STORED, "more than 64 records"),
    ],
)
def test_zip_files_that_torch_does_not_write_are_refused(tmp_path, records, compression, message):
    assert message in expect_torch_refusal(write_zip(tmp_path / "odd.dat", records, compression=compression))


def test_a_zip_file_as_torch_writes_it_is_read(tmp_path):
    path = write_zip(tmp_path / "row.dat", [("a/data.pkl", PICKLED), ("a/version", b"3\n")])
    np.testing.assert_array_equal(read_torch_weights(path, NETWORK), ROW.astype(np.float32))


def test_damage_in_any_record_of_a_zip_file_is_found(tmp_path):
    path = write_zip(tmp_path / "row.dat", [("a/data.pkl", PICKLED), ("a/version", b"3\n")])
    path.write_bytes(path.read_bytes().replace(b"3\n", b"4\n"))
    assert "damaged" in expect_torch_refusal(path)


def test_records_that_share_bytes_are_refused(tmp_path):
    path = write_zip(tmp_path / "bomb.dat", [(f"a/{k}", b"x" * 1000) for k in range(9)])
    rows, end = path.read_bytes(), b"PK\x01\x02"
    directory = rows.index(end)
    first = rows[: rows.index(b"PK\x03\x04", 4)]
    entries = bytearray(rows[directory:])
    for k in range(9):  # every record points at the first
        at = [i for i in range(len(entries)) if entries.startswith(end, i)][k]
        entries[at + 42 : at + 46] = bytes(4)
    size = entries.rindex(b"PK\x05\x06") + 16
    entries[size : size + 4] = len(first).to_bytes(4, "little")
    path.write_bytes(first + entries)
    assert "records are larger than the file" in expect_torch_refusal(path)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"numpy\nndarray", b"numpy\nndarr\\x61y"),  # an escape that another reader of pickles could decode to ndarray
        (b"numpy\ndtype", b"numpy\nmemmap"),
        (b"\x80\x02cnumpy", b"\x80\x03cnumpy"),  # another protocol
        (b"_codecs\nencode", b"posix\nsystem"),
        (b"K\x14\x85", b"K\x14K\x14\x86"),
        (b"K\x14\x85", b"K\x14K\x13\x86"),
        (b"K\x14\x85", b"K\x14h\x02"),  # takes a tuple from the memo instead of making one
        (b"K\x14\x85", b"J\xff\xff\xff\x7f\x85"),
        (b"\x00f8", b"\x00O8"),
    ],
)
def test_a_pickle_with_any_other_operation_is_refused(tmp_path, old, new):
    expect_torch_refusal(replace_bytes(write_torch_file(tmp_path / "forged.dat", ROW, zipped=False), (old, new)))


@settings(max_examples=300)
@given(data=st.data(), zipped=st.booleans())
def test_a_damaged_file_is_read_as_a_row_or_refused(tmp_path_factory, data, zipped):
    path = write_torch_file(tmp_path_factory.mktemp("legacy") / "row.dat", ROW, zipped)
    content = bytearray(path.read_bytes())
    at = data.draw(st.integers(0, len(content) - 1))
    content[at : at + data.draw(st.integers(0, 4))] = data.draw(st.binary(max_size=6))
    Path(path).write_bytes(content)
    try:
        weights = read_torch_weights(path, NETWORK)
    except WeightFileError as error:
        assert "\n" not in str(error)
    else:
        assert weights.shape == (20,)
        assert np.isfinite(weights).all()
