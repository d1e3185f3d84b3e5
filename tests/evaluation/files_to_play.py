"""Policy files of every kind of network, for tests of what plays them."""

from dataclasses import replace

import numpy as np

from hebbes.environments.environment_spec import EnvironmentSpec
from hebbes.environments.part_spec import PartSpec
from hebbes.files.policy_file import SavedPolicy, save_policy
from hebbes.policies.hebbian import Hebbian
from hebbes.policies.linear import Linear
from hebbes.policies.lstm import LSTM
from hebbes.policies.mlp import MLP

CARTPOLE = EnvironmentSpec("CartPole-v1", "gymnasium")
HALF_CHEETAH = EnvironmentSpec(
    "HalfCheetah-v5",
    "gymnasium",
    wrappers=(PartSpec("clip_action"),),
    training_wrappers=(PartSpec("early_stop", {"negative_streak": 2}),),
)


def save_balancing_policy(path, **changes):
    """Saves a linear policy that pushes the cart to where the pole falls, and balances it."""
    weights = np.array([0, 0, 0, 0, 0.1, 0.2, 1, 0.5], np.float32)
    saved = SavedPolicy(Linear((4,), 2), "linear", weights, {}, "argmax", CARTPOLE, {"score": 500.0, "generation": 3})
    save_policy(path, replace(saved, **changes))
    return path


def _make(policy, name, head="argmax", spec=CARTPOLE, buffers=None):
    weights = policy.initial_params(np.random.default_rng(1))
    return SavedPolicy(policy, name, weights, buffers or {}, head, spec, {})


def _make_statistics(size):
    rng = np.random.default_rng(2)
    mean, std = rng.normal(size=size) / 10, 1 + rng.uniform(size=size)
    return {"observation_mean": mean.astype(np.float32), "observation_std": std.astype(np.float32)}


EVERY_KIND = {
    "mlp": _make(MLP((4,), 2, hidden_sizes=(8,)), "mlp"),
    "mlp_with_statistics": _make(
        MLP((17,), 6, hidden_sizes=(16, 8)), "mlp", "tanh", HALF_CHEETAH, _make_statistics(17)
    ),
    "lstm": _make(LSTM((4,), 2, recurrent_size=8), "lstm"),
    "hebbian": _make(Hebbian((4,), 2, hidden_sizes=(8,), modulation="reward", init_weights="normal"), "hebbian"),
    "hebbian_with_traces": _make(
        Hebbian((17,), 6, hidden_sizes=(8,), modulation="reward", eligibility=True), "hebbian", "tanh", HALF_CHEETAH
    ),
    "hebbian_coevolved": _make(Hebbian((4,), 2, hidden_sizes=(8,), init_weights="coevolve"), "hebbian"),
}
"""By what it tests."""
