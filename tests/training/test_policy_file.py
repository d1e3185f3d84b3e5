"""Policy files: they come back as they were, and anything else is refused with one line that names the file."""

import json
import os
import pickle
import random
import signal
import stat
import subprocess
import sys
import time
from dataclasses import replace
from math import nan

import numpy as np
import pytest
import safetensors
from gymnasium.spaces import Box, Discrete
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors.numpy import save

from policies.cnn import Cnn
from policies.linear import Linear
from policies.mlp import Mlp
from rollouts.environments import EnvironmentSpec, WrapperSpec
from training.policy_file import SavedPolicy, WeightFileError, check_fits, load_policy, save_policy
from training.policy_format import digest

SPEC = EnvironmentSpec(
    "HalfCheetah-v5",
    "gymnasium",
    env_kwargs={"ctrl_cost_weight": 0.25},
    wrappers=(WrapperSpec("clip_action"),),
    training_wrappers=(WrapperSpec("early_stop", {"negative_streak": 20}),),
)


def saved_policy(policy=None, **changes):
    policy = policy or Mlp((3,), 2, hidden_sizes=(4,))
    weights = np.random.default_rng(0).normal(size=policy.layout.num_params).astype(np.float32)
    name = type(policy).__name__.lower()
    saved = SavedPolicy(policy, name, weights, {}, "tanh", SPEC, {"score": 1.5, "seed": 7})
    return replace(saved, **changes)


def same(one, other):
    assert replace(one, weights=None, buffers=None) == replace(other, weights=None, buffers=None)
    assert one.buffers.keys() == other.buffers.keys()
    for left, right in [
        (one.weights, other.weights),
        *((one.buffers[name], other.buffers[name]) for name in one.buffers),
    ]:
        assert (left.dtype, left.shape) == (right.dtype, right.shape)
        np.testing.assert_array_equal(left, right)


def file_with(path, saved, edit=lambda header: None, arrays=None, resign=True):
    """A policy file whose header was edited, or its arrays replaced, and signed again as a forger would."""
    save_policy(path, saved)
    with safetensors.safe_open(path, framework="np") as file:
        header = json.loads(file.metadata()["hebbes"])
        arrays = arrays or {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    edit(header)
    if resign:
        header["sha256"] = digest(header, arrays)
    path.write_bytes(save(arrays, metadata={"hebbes": json.dumps(header)}))
    return path


def complaint(path, **arguments):
    with pytest.raises(WeightFileError) as error:
        load_policy(path, **arguments)
    message = str(error.value)
    assert message.startswith(f"{path}: ")
    assert "\n" not in message
    return message.removeprefix(f"{path}: ")


finite_float32 = st.floats(width=32, allow_nan=False, allow_infinity=False)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
buffer_dtypes = st.sampled_from(["<f4", ">f4", "<f8", "<i8", "|u1", "|b1"])


@settings(deadline=None, max_examples=60)
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
    policy = Mlp(shape, outputs, hidden_sizes=sizes, bias=bias)
    count = policy.layout.num_params
    weights = np.array(data.draw(st.lists(finite_float32, min_size=count, max_size=count)), np.float32)
    arrays = {
        name: np.random.default_rng(1).integers(0, 2, size=shape).astype(dtype)
        for name, (dtype, shape) in buffers.items()
    }
    saved = saved_policy(policy, weights=weights, buffers=arrays, provenance=provenance)
    save_policy(path, saved)
    same(load_policy(path), replace(saved, buffers={n: a.astype(a.dtype.newbyteorder("=")) for n, a in arrays.items()}))


@pytest.mark.parametrize("policy", [Linear((3,), 2, bias=True), Cnn((20, 18, 3), 3, hidden_sizes=(5,))])
def test_other_policies_come_back_too(tmp_path, policy):
    save_policy(tmp_path / "best.dat", saved_policy(policy))
    same(load_policy(tmp_path / "best.dat"), saved_policy(policy))


def test_strided_arrays_are_saved_as_they_look(tmp_path):
    saved = saved_policy(buffers={"observation_mean": np.arange(6.0)[::2], "columns": np.arange(6.0).reshape(2, 3).T})
    every_other = replace(saved, weights=np.repeat(saved.weights, 2)[::2])
    save_policy(tmp_path / "best.dat", every_other)
    same(load_policy(tmp_path / "best.dat"), saved)


def test_anyone_can_read_the_file_with_safetensors(tmp_path):
    saved = saved_policy(buffers={"observation_mean": np.array([1.0, 2.0, 3.0])})
    save_policy(tmp_path / "best.dat", saved)
    with safetensors.safe_open(tmp_path / "best.dat", framework="np") as file:
        np.testing.assert_array_equal(file.get_tensor("weights"), saved.weights)
        np.testing.assert_array_equal(file.get_tensor("buffers.observation_mean"), [1.0, 2.0, 3.0])
        assert list(file.metadata()) == ["hebbes"]
        header = json.loads(file.metadata()["hebbes"])
    assert header["policy"] == {
        "name": "mlp", "observation_shape": [3], "num_outputs": 2, "hidden_sizes": [4], "bias": False
    }  # fmt: skip
    assert header["format_version"] == 1
    assert header["environment"]["environment"] == "HalfCheetah-v5"
    assert header["provenance"] == {"score": 1.5, "seed": 7}


def test_same_policy_same_bytes_in_any_process(tmp_path):
    mean, std = np.arange(3.0), np.ones(3)
    save_policy(tmp_path / "one.dat", saved_policy(buffers={"a": mean, "b": std}, provenance={"x": 1, "y": 2}))
    save_policy(tmp_path / "two.dat", saved_policy(buffers={"b": std, "a": mean}, provenance={"y": 2, "x": 1}))
    again = f"""if True:
        import sys; sys.path[:0] = {sys.path!r}
        from pathlib import Path
        from training.policy_file import load_policy, save_policy
        save_policy(Path(sys.argv[2]), load_policy(Path(sys.argv[1])))
    """
    arguments = [sys.executable, "-c", again, str(tmp_path / "one.dat"), str(tmp_path / "three.dat")]
    subprocess.run(arguments, check=True, env=os.environ | {"PYTHONHASHSEED": "5"})
    assert (tmp_path / "one.dat").read_bytes() == (tmp_path / "two.dat").read_bytes()
    assert (tmp_path / "one.dat").read_bytes() == (tmp_path / "three.dat").read_bytes()


def test_a_score_that_is_not_a_number_is_kept_as_none(tmp_path):
    save_policy(tmp_path / "best.dat", saved_policy(provenance={"score": nan, "seed": 1}))
    assert load_policy(tmp_path / "best.dat").provenance == {"score": None, "seed": 1}


def test_the_file_is_readable_for_all(tmp_path):
    save_policy(tmp_path / "best.dat", saved_policy())
    assert stat.S_IMODE((tmp_path / "best.dat").stat().st_mode) == 0o644


def test_a_loaded_policy_acts_by_its_weights_statistics_and_head(tmp_path):
    # One matrix: output = 2 * (x0 - 1) / 0.5 - (x1 - 1) / 0.5, through tanh.
    buffers = {"observation_mean": np.array([1.0, 1.0]), "observation_std": np.array([0.5, 0.5])}
    weights = np.array([2.0, -1.0], np.float32)
    save_policy(tmp_path / "best.dat", saved_policy(Linear((2,), 1), weights=weights, buffers=buffers))
    actions = load_policy(tmp_path / "best.dat").act(np.array([[1.0, 1.0], [1.25, 1.5], [1.0, 1.25]]))
    np.testing.assert_allclose(actions, np.tanh([[0.0], [0.0], [-0.5]]), atol=1e-7)


def test_a_truncated_file_is_refused_wherever_it_ends(tmp_path):
    path = tmp_path / "best.dat"
    save_policy(path, saved_policy())
    whole = path.read_bytes()
    for length in range(1, len(whole), 7):
        path.write_bytes(whole[:length])
        assert "truncated" in complaint(path) or "not a hebbes policy file" in complaint(path)


def test_a_flipped_bit_is_refused_wherever_it_lies(tmp_path):
    path = tmp_path / "best.dat"
    save_policy(path, saved_policy(buffers={"observation_mean": np.arange(3.0)}))
    whole = path.read_bytes()
    flip = random.Random(0)
    refused = 0
    for _ in range(400):
        damaged = bytearray(whole)
        damaged[flip.randrange(len(whole))] ^= 1 << flip.randrange(8)
        path.write_bytes(damaged)
        try:
            same(load_policy(path), saved_policy(buffers={"observation_mean": np.arange(3.0)}))
        except WeightFileError:
            refused += 1
    assert refused > 390  # a flipped bit may turn one kind of white space in the header into another


def test_a_save_killed_at_any_moment_leaves_a_valid_file(tmp_path):
    path = tmp_path / "best.dat"
    policy = Mlp((100,), 10, hidden_sizes=(1000,))
    candidates = [saved_policy(policy, weights=np.full(policy.layout.num_params, k, np.float32)) for k in range(2)]
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
        weights = load_policy(path).weights
        assert (weights == weights[0]).all()
    assert [leftover for leftover in tmp_path.iterdir() if leftover.suffix == ".dat"] == [path]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"weights": np.zeros(3, np.float32)}, r"weights of shape \(3,\), but the policy has 20 parameters"),
        ({"weights": np.full(20, nan, np.float32)}, "weights holds numbers that are not finite"),
        ({"weights": np.zeros(20)}, "float32, not float64"),
        ({"buffers": {"observation_std": np.array([np.inf])}}, "observation_std holds numbers that are not finite"),
        ({"provenance": {"notes": "x" * 2**20}}, "the header would exceed 1048576 bytes"),
    ],
)
def test_what_could_not_be_loaded_is_never_saved(tmp_path, changes, message):
    save_policy(tmp_path / "best.dat", saved_policy())
    with pytest.raises(ValueError, match=message):
        save_policy(tmp_path / "best.dat", saved_policy(**changes))
    same(load_policy(tmp_path / "best.dat"), saved_policy())


class Exploit:
    def __reduce__(self):
        return (os.mkdir, ("exploited",))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "the file is empty"),
        (b"\x10\x00\x00", "truncated, or not a hebbes policy file"),
        (b"A plain text file.\n", "not a hebbes policy file"),
        (pickle.dumps(Exploit()), "not a hebbes policy file"),
        (save({"weights": np.zeros(3, np.float32)}), "not a hebbes policy file"),
        (save({"weights": np.zeros(3, np.float32)}, {"format": "pt"}), "not a hebbes policy file"),
        (save({"weights": np.zeros(3, np.float32)}, {"hebbes": "{"}), "the header is not JSON"),
        (save({"weights": np.zeros(3, np.float32)}, {"hebbes": "[" * 50_000}), "the header is not JSON"),
        (save({"weights": np.zeros(3, np.float32)}, {"hebbes": "[]"}), "the header is not a JSON object"),
        ((2**20 + 1).to_bytes(8, "little") + b" " * (2**20 + 1), "not a hebbes policy file"),
        ((50_000).to_bytes(8, "little") + b"[" * 50_000, "not a hebbes policy file"),
    ],
)
def test_a_foreign_file_is_refused_and_runs_nothing(tmp_path, monkeypatch, content, message):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "foreign.dat"
    path.write_bytes(content)
    assert complaint(path) == message
    assert [child.name for child in tmp_path.iterdir()] == ["foreign.dat"]


def test_what_is_no_file_or_too_large_is_refused(tmp_path):
    assert complaint(tmp_path) == "not a file"
    assert complaint(tmp_path / "missing.dat") == "no such file"
    with (tmp_path / "huge.dat").open("wb") as file:
        file.truncate(4 * 2**30 + 1)
    assert complaint(tmp_path / "huge.dat").startswith("the file has 4294967297 bytes, more than")


def set_to(*keys, value):
    def edit(header):
        for key in keys[:-1]:
            header = header[key]
        header[keys[-1]] = value

    return edit


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (set_to("format_version", value=2), "format version 2, but this program reads version 1 only"),
        (set_to("provenance", value=[]), "bad, missing or unknown entry 'provenance'"),
        (set_to("extra", value=1), "bad, missing or unknown entry 'extra'"),
        (lambda header: header.pop("action_head"), "bad, missing or unknown entry 'action_head'"),
        (set_to("action_head", value="softmax"), "unknown action head 'softmax'"),
        (set_to("policy", "name", value="mpl"), "did you mean 'mlp'"),
        (set_to("policy", "name", value=3), "the policy's name must be text, not 3"),
        (set_to("policy", "depth", value=3), "does not describe a policy 'mlp'"),
        (set_to("policy", "hidden_sizes", value=["4"]), "hidden_sizes"),
        (set_to("policy", "hidden_sizes", value=[5]), r"weights of shape (20,), but the policy has 25 parameters"),
        (set_to("policy", "observation_shape", value=None), "does not describe a policy 'mlp'"),
        (set_to("environment", "wrappers", 0, "name", value="clip_actoin"), "did you mean 'clip_action'"),
        (set_to("environment", "backend", value="unity"), "backend must be one of envpool, gymnasium"),
        (set_to("environment", "imports", value=3), "imports must be names"),
    ],
)
def test_a_header_that_makes_no_sense_is_refused_even_when_signed(tmp_path, edit, message):
    assert message in complaint(file_with(tmp_path / "best.dat", saved_policy(), edit))


@settings(deadline=None, max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data(), value=json_values)
def test_whatever_a_signed_header_says_the_answer_is_a_policy_or_one_line(tmp_path, data, value):
    def edit(header):
        part, key = header, data.draw(st.sampled_from(["policy", "environment", "action_head"]))
        while isinstance(part[key], (dict, list)) and part[key] and data.draw(st.booleans()):
            part = part[key]
            key = data.draw(st.sampled_from(sorted(part) if isinstance(part, dict) else range(len(part))))
        part[key] = value

    path = file_with(tmp_path / "best.dat", saved_policy(), edit)
    try:
        load_policy(path)
    except WeightFileError as error:
        assert "\n" not in str(error)


def test_a_header_with_numbers_that_json_lacks_is_refused(tmp_path):
    path = file_with(tmp_path / "best.dat", saved_policy(), set_to("provenance", "score", value=nan), resign=False)
    assert "not JSON compliant" in complaint(path)


def test_an_edited_header_is_refused_unless_signed(tmp_path):
    path = file_with(tmp_path / "best.dat", saved_policy(), set_to("provenance", "score", value=9000.0), resign=False)
    assert complaint(path) == "damaged: the checksum does not match"


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"weights": np.zeros(20)}, "float32, not float64"),
        ({"weights": np.full(20, np.inf, np.float32)}, "not finite"),
        ({"weights": np.zeros((4, 5), np.float32)}, "weights of shape (4, 5)"),
        ({"weights": np.zeros(20, np.float32), "other": np.zeros(1)}, "not ['other', 'weights']"),
        ({"buffers.weights": np.zeros(20, np.float32)}, "not ['buffers.weights']"),
    ],
)
def test_arrays_that_do_not_fit_are_refused_even_when_signed(tmp_path, arrays, message):
    assert message in complaint(file_with(tmp_path / "best.dat", saved_policy(), arrays=arrays))


USERS_CODE = """
from pathlib import Path
import policies.mlp
Path(__file__).with_suffix(".imported").touch()
class Net(policies.mlp.Mlp): pass
class Shift: pass
"""


@pytest.mark.parametrize(
    "edit",
    [
        set_to("policy", "name", value="users_code:Net"),
        set_to("environment", "wrappers", 0, "name", value="users_code:Shift"),
        set_to("environment", "training_wrappers", 0, "name", value="users_code:Shift"),
        set_to("environment", "gymnasium_wrappers", value=[{"name": "users_code:Shift"}]),
        set_to("environment", "imports", value=["users_code"]),
        set_to("environment", "environment", value="users_code:Env-v0"),
        set_to("environment", "env_kwargs", value={"inner": ["users_code:Env-v0"]}),
    ],
)
def test_a_file_cannot_choose_what_is_imported(tmp_path, monkeypatch, edit):
    (tmp_path / "users_code.py").write_text(USERS_CODE)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "users_code", raising=False)
    path = file_with(tmp_path / "best.dat", saved_policy(), edit)
    assert complaint(path) == "needs code from the module 'users_code'; if you trust it, give --import users_code"
    assert complaint(path, allow_imports=["users"]).startswith("needs code")
    assert not (tmp_path / "users_code.imported").exists()
    assert load_policy(path, allow_imports=["users_code"]).policy_name in ("mlp", "users_code:Net")


@pytest.mark.parametrize("name", ["policies.mlp:Mlp", "os:system", "policies.mlp:dataclass", "wrappers.base:Box"])
def test_only_our_own_classes_need_no_permission(tmp_path, name):
    path = file_with(tmp_path / "best.dat", saved_policy(), set_to("policy", "name", value=name))
    if name == "policies.mlp:Mlp":
        assert load_policy(path).policy == saved_policy().policy
    else:
        complaint(path)


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
        check_fits("best.dat", saved_policy(), observation_space, action_space)


def test_a_policy_for_the_same_spaces_fits():
    check_fits("best.dat", saved_policy(), BOX, Box(0, 5, (2,)))
    check_fits("best.dat", saved_policy(action_head="argmax"), BOX, Discrete(2))
