"""Policy files: a loaded policy equals the saved one, whenever the machine stops, and its spaces are checked."""

import json
import os
import random
import signal
import stat
import sys
import time
from dataclasses import replace
from math import nan
from pathlib import Path

import numpy as np
import pytest
import safetensors
from gymnasium.spaces import Box, Discrete
from hypothesis import given, settings
from hypothesis import strategies as st

from hebbes.files.policy_file import check_fits, read_policy_file, save_policy
from hebbes.files.weight_file import WeightFileError
from hebbes.policies.cnn import CNN
from hebbes.policies.linear import Linear
from hebbes.policies.mlp import MLP
from tests.files.saved_policies import act, assert_same_policy, json_values, make_saved_policy, write_forged_file
from tests.python_process import run_python
from tests.shape_checks import unchecked

finite_float32 = st.floats(width=32, allow_nan=False, allow_infinity=False)
buffer_dtypes = st.sampled_from(["<f4", ">f4", "<f8", "<i8", "|u1", "|b1"])


@settings(max_examples=60)
@given(
    data=st.data(),
    sizes=st.lists(st.integers(1, 5), max_size=3).map(tuple),
    shape=st.lists(st.integers(1, 4), min_size=1, max_size=3).map(tuple),
    outputs=st.integers(1, 4),
    bias=st.booleans(),
    buffers=st.dictionaries(
        st.text(max_size=8), st.tuples(buffer_dtypes, st.lists(st.integers(0, 3), max_size=3)), max_size=3
    ),
    provenance=st.dictionaries(st.text(max_size=8), json_values, max_size=4),
)
def test_everything_comes_back(tmp_path_factory, data, sizes, shape, outputs, bias, buffers, provenance):
    path = tmp_path_factory.mktemp("weights") / "best.dat"
    policy = MLP(shape, outputs, hidden_sizes=sizes, bias=bias)
    count = policy.layout.num_params
    weights = np.array(data.draw(st.lists(finite_float32, min_size=count, max_size=count)), np.float32)
    arrays = {
        name: np.random.default_rng(1).integers(0, 2, size=shape).astype(dtype)
        for name, (dtype, shape) in buffers.items()
    }
    saved = make_saved_policy(policy, weights=weights, buffers=arrays, provenance=provenance)
    save_policy(path, saved)
    assert_same_policy(
        read_policy_file(path),
        replace(saved, buffers={n: a.astype(a.dtype.newbyteorder("=")) for n, a in arrays.items()}),
    )


def test_a_file_without_an_initialization_is_loaded(tmp_path):
    saved = make_saved_policy(MLP((3,), 2, hidden_sizes=(4,)))
    path = write_forged_file(tmp_path / "old.dat", saved, lambda header: header["policy"].pop("initialization"))
    assert_same_policy(read_policy_file(path), saved)


def test_a_path_may_be_text(tmp_path):
    saved = make_saved_policy()
    save_policy(str(tmp_path / "a.dat"), saved)
    assert_same_policy(read_policy_file(str(tmp_path / "a.dat")), saved)


@unchecked()
@pytest.mark.parametrize("path", [None, 3, b"a.dat", ["a.dat"]])
def test_a_path_of_another_type_is_a_type_error(path):
    for use in (read_policy_file, lambda path: save_policy(path, make_saved_policy())):
        with pytest.raises(TypeError, match=r"^the path of a policy file must be a str or a pathlib.Path, got \w+ "):
            use(path)


@pytest.mark.parametrize("policy", [Linear((3,), 2, bias=True), CNN((20, 18, 3), 3, hidden_sizes=(5,))])
def test_other_policies_come_back_too(tmp_path, policy):
    save_policy(tmp_path / "best.dat", make_saved_policy(policy))
    assert_same_policy(read_policy_file(tmp_path / "best.dat"), make_saved_policy(policy))


def test_strided_arrays_are_saved_by_their_values(tmp_path):
    saved = make_saved_policy(
        buffers={"observation_mean": np.arange(6.0)[::2], "columns": np.arange(6.0).reshape(2, 3).T}
    )
    every_other = replace(saved, weights=np.repeat(saved.weights, 2)[::2])
    save_policy(tmp_path / "best.dat", every_other)
    assert_same_policy(read_policy_file(tmp_path / "best.dat"), saved)


def test_anyone_can_read_the_file_with_safetensors(tmp_path):
    saved = make_saved_policy(buffers={"observation_mean": np.array([1.0, 2.0, 3.0])})
    save_policy(tmp_path / "best.dat", saved)
    with safetensors.safe_open(tmp_path / "best.dat", framework="np") as file:
        np.testing.assert_array_equal(file.get_tensor("weights"), saved.weights)
        np.testing.assert_array_equal(file.get_tensor("buffers.observation_mean"), [1.0, 2.0, 3.0])
        assert list(file.metadata()) == ["hebbes"]
        header = json.loads(file.metadata()["hebbes"])
    assert header["policy"] == {
        "name": "mlp", "observation_shape": [3], "num_outputs": 2, "hidden_sizes": [4], "bias": False,
        "activation": "tanh", "initialization": "xavier",
    }  # fmt: skip
    assert (header["kind"], header["format_version"]) == ("policy", 3)
    assert header["environment"]["environment"] == "HalfCheetah-v5"
    assert header["provenance"] == {"score": 1.5, "seed": 7}


def test_a_file_of_version_1_still_opens():
    # written by a release that had only one kind of file
    version_1 = Path(__file__).parent / "files" / "format_1.dat"
    assert_same_policy(read_policy_file(version_1), make_saved_policy(buffers={"observation_mean": np.arange(3.0)}))


def test_the_same_policy_gives_the_same_bytes_in_any_process(tmp_path):
    mean, std = np.arange(3.0), np.ones(3)
    save_policy(tmp_path / "one.dat", make_saved_policy(buffers={"a": mean, "b": std}, provenance={"x": 1, "y": 2}))
    save_policy(tmp_path / "two.dat", make_saved_policy(buffers={"b": std, "a": mean}, provenance={"y": 2, "x": 1}))
    again = f"""if True:
        import sys; sys.path[:0] = {sys.path!r}
        from pathlib import Path
        from hebbes.files.policy_file import read_policy_file, save_policy
        save_policy(Path(sys.argv[2]), read_policy_file(Path(sys.argv[1])))
    """
    run_python("-c", again, tmp_path / "one.dat", tmp_path / "three.dat", env=os.environ | {"PYTHONHASHSEED": "5"})
    assert (tmp_path / "one.dat").read_bytes() == (tmp_path / "two.dat").read_bytes()
    assert (tmp_path / "one.dat").read_bytes() == (tmp_path / "three.dat").read_bytes()


def test_a_score_that_is_not_a_number_is_kept_as_none(tmp_path):
    save_policy(tmp_path / "best.dat", make_saved_policy(provenance={"score": nan, "seed": 1}))
    assert read_policy_file(tmp_path / "best.dat").provenance == {"score": None, "seed": 1}


def test_the_file_is_readable_for_all(tmp_path):
    save_policy(tmp_path / "best.dat", make_saved_policy())
    assert stat.S_IMODE((tmp_path / "best.dat").stat().st_mode) == 0o644


def test_a_loaded_policy_acts_by_its_weights_statistics_and_head(tmp_path):
    # One matrix: output = 2 * (x0 - 1) / 0.5 - (x1 - 1) / 0.5, through tanh.
    buffers = {"observation_mean": np.array([1.0, 1.0]), "observation_std": np.array([0.5, 0.5])}
    weights = np.array([2.0, -1.0], np.float32)
    save_policy(tmp_path / "best.dat", make_saved_policy(Linear((2,), 1), weights=weights, buffers=buffers))
    actions = act(read_policy_file(tmp_path / "best.dat"), np.array([[1.0, 1.0], [1.25, 1.5], [1.0, 1.25]]))
    np.testing.assert_allclose(actions, np.tanh([[0.0], [0.0], [-0.5]]), atol=1e-7)


def test_a_save_killed_at_any_moment_leaves_a_valid_file(tmp_path):
    path = tmp_path / "best.dat"
    policy = MLP((100,), 10, hidden_sizes=(1000,))
    candidates = [make_saved_policy(policy, weights=np.full(policy.layout.num_params, k, np.float32)) for k in range(2)]
    save_policy(path, candidates[0])
    for _ in range(6):
        child = os.fork()
        if child == 0:
            while True:
                for candidate in candidates:
                    save_policy(path, candidate)
        time.sleep(random.uniform(0.005, 0.06))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        weights = read_policy_file(path).weights
        assert (weights == weights[0]).all()
    assert [leftover for leftover in tmp_path.iterdir() if leftover.suffix == ".dat"] == [path]


@unchecked()
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"weights": np.zeros(3, np.float32)}, r"weights of shape \(3,\), but the policy has 20 parameters"),
        ({"weights": np.full(20, nan, np.float32)}, "weights holds numbers that are not finite"),
        ({"weights": np.zeros(20)}, "float32, not float64"),
        ({"buffers": {"observation_std": np.array([np.inf])}}, "observation_std holds numbers that are not finite"),
        ({"policy": MLP((3,), 2, hidden_sizes=(1,) * 30_000)}, "the description of policy and environment has 90"),
        ({"buffers": {"stack": np.zeros(2**23 + 1)}}, "the policy file would have 67109.* bytes, more than 67108864"),
        ({"provenance": {"notes": "x" * 2**20}}, "the header would exceed 1048576 bytes"),
    ],
)
def test_what_could_not_be_loaded_is_never_saved(tmp_path, changes, message):
    save_policy(tmp_path / "best.dat", make_saved_policy())
    with pytest.raises(ValueError, match=message):
        save_policy(tmp_path / "best.dat", make_saved_policy(**changes))
    assert_same_policy(read_policy_file(tmp_path / "best.dat"), make_saved_policy())


BOX = Box(-1, 1, (3,))


@pytest.mark.parametrize(
    ("observation_space", "action_space", "message"),
    [
        (Box(-1, 1, (4,)), Box(-1, 1, (2,)), r"shape \(3,\) .* shape \(4,\)"),
        (BOX, Box(-1, 1, (3,)), r"gives 2 outputs .* actions for 3 outputs"),
        (BOX, Discrete(2), "2 outputs to tanh, .* discrete actions for 2 outputs"),
    ],
)
def test_a_policy_for_other_spaces_is_refused_with_both_shapes(tmp_path, observation_space, action_space, message):
    with pytest.raises(WeightFileError, match=rf"^best\.dat: .*{message}"):
        check_fits(Path("best.dat"), make_saved_policy(), observation_space, action_space)


def test_a_policy_for_the_same_spaces_fits():
    check_fits(Path("best.dat"), make_saved_policy(), BOX, Box(0, 5, (2,)))
    check_fits(Path("best.dat"), make_saved_policy(action_head="argmax"), BOX, Discrete(2))
