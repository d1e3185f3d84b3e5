"""Sample policies, forged policy files and comparisons for the tests of policy files."""

import json
from dataclasses import replace

import numpy as np
import pytest
import safetensors
from hypothesis import strategies as st
from safetensors.numpy import save

from hebbes.environments.environment_spec import EnvironmentSpec
from hebbes.environments.part_spec import PartSpec
from hebbes.files.checksummed_file import compute_checksum
from hebbes.files.policy_file import SavedPolicy, read_policy_file, save_policy
from hebbes.files.weight_file import WeightFileError
from hebbes.policies.action_heads import HEADS
from hebbes.policies.mlp import MLP

SPEC = EnvironmentSpec(
    "HalfCheetah-v5",
    "gymnasium",
    env_kwargs={"ctrl_cost_weight": 0.25},
    wrappers=(PartSpec("clip_action"),),
    training_wrappers=(PartSpec("early_stop", {"negative_streak": 20}),),
)


def make_saved_policy(policy=None, **changes):
    policy = policy or MLP((3,), 2, hidden_sizes=(4,))
    weights = np.random.default_rng(0).normal(size=policy.layout.num_params).astype(np.float32)
    name = type(policy).__name__.lower()
    saved = SavedPolicy(policy, name, weights, {}, "tanh", SPEC, {"score": 1.5, "seed": 7})
    return replace(saved, **changes)


def assert_same_policy(one, other):
    assert replace(one, weights=other.weights, buffers=other.buffers) == other
    assert one.buffers.keys() == other.buffers.keys()
    for left, right in [
        (one.weights, other.weights),
        *((one.buffers[name], other.buffers[name]) for name in one.buffers),
    ]:
        assert (left.dtype, left.shape) == (right.dtype, right.shape)
        np.testing.assert_array_equal(left, right)


def write_forged_file(path, saved, edit=lambda header: None, arrays=None, resign=True, respell=str):
    """Writes a policy file with an edited header or other arrays, and a new checksum, as a forger would."""
    save_policy(path, saved)
    with safetensors.safe_open(path, framework="np") as file:
        header = json.loads(file.metadata()["hebbes"])
        arrays = arrays or {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    edit(header)
    if resign:
        header["sha256"] = compute_checksum(header, arrays)
    text = respell(json.dumps(header, sort_keys=True, separators=(",", ":")))
    path.write_bytes(save(arrays, metadata={"hebbes": text}))
    return path


def expect_refusal(path, **arguments):
    """Asserts that `read_policy_file` refuses the file with one line, and returns the line without the path."""
    with pytest.raises(WeightFileError) as error:
        read_policy_file(path, **arguments)
    message = str(error.value)
    assert message.startswith(f"{path}: ")
    assert "\n" not in message
    return message.removeprefix(f"{path}: ")


def make_setter(*keys, value):
    """A function that sets one entry of a header, found by its keys from the outermost to the innermost."""

    def edit(header):
        for key in keys[:-1]:
            header = header[key]
        header[keys[-1]] = value

    return edit


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


def act(saved, observations):
    """Actions of a stateless policy, as the wrapped environment takes them."""
    weights = np.repeat(saved.weights[np.newaxis], len(observations), axis=0)
    outputs = saved.policy.act(weights, observations, np.zeros(len(observations), np.float32), None, saved.buffers)
    return HEADS[saved.action_head](outputs)
