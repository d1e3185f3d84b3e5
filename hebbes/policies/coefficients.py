"""The coefficients of a plastic network's rules, by name or by synapse."""

import numpy as np
from jaxtyping import Float32

from hebbes.contracts.policy import Buffers
from hebbes.policies.hebbian import Hebbian
from hebbes.policies.learning_rules import NEURAL_RULES, RULES


def read_coefficients_by_name(
    policy: Hebbian, weights: Float32[np.ndarray, " params"]
) -> dict[str, Float32[np.ndarray, " numbers"]]:
    """The values of each coefficient (A, B, ...) in all sets of the policy, in the order of the rule.

    The parameters of a neural rule are under the rule's name. With sharing `neuron` the values are the factors of the
    presynaptic and postsynaptic neurons, and the coefficients of a synapse are their products.
    """
    arrays = _read_rule_arrays(policy, weights)
    if policy.hebb_rule in NEURAL_RULES:
        return {policy.hebb_rule: arrays[0].ravel()}
    return {
        name: np.concatenate([array[:, place].ravel() for array in arrays])
        for place, name in enumerate(RULES[policy.hebb_rule])
    }


def read_synaptic_coefficients(
    policy: Hebbian, row: Float32[np.ndarray, " params"], buffers: Buffers
) -> Float32[np.ndarray, "synapses coefficients"]:
    """The coefficients of every synapse, layer by layer. In a layer: by postsynaptic, then by presynaptic neuron.

    Not for sharing `neuron`, nor for neural rules.
    """
    arrays = _read_rule_arrays(policy, row)
    if policy.sharing == "synapse":
        return np.concatenate([array.swapaxes(1, 2).reshape(-1, array.shape[1]) for array in arrays])
    return arrays[0][0].T[np.concatenate([table.ravel() for table in policy.rule_layout.read_tables(buffers)])]


def _read_rule_arrays(policy: Hebbian, row: Float32[np.ndarray, " params"]) -> list[Float32[np.ndarray, "_ _ _"]]:
    return [policy.layout.view(row[np.newaxis], name)[0] for name in policy.rule_arrays]
