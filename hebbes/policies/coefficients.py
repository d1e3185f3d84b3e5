"""The coefficients of a plastic network's rules: by their names, or of each synapse."""

import numpy as np
from jaxtyping import Float32

from hebbes.contracts.policy import Buffers
from hebbes.policies.hebbian import Hebbian
from hebbes.policies.neural_rule import NEURAL_RULES
from hebbes.policies.kernels.plastic_layers import RULES
from hebbes.policies.sharing import clustered_tables, tables


def coefficients_by_name(
    policy: Hebbian, weights: Float32[np.ndarray, " params"]
) -> dict[str, Float32[np.ndarray, " numbers"]]:
    """All sets' numbers for each coefficient (A, B, ...), in the order of the rule.

    The numbers of a neural rule are under the rule's name. Of rules per neuron these are the factors of pre and post,
    whose products are the coefficients.
    """
    arrays = _rule_arrays(policy, weights)
    if policy.hebb_rule in NEURAL_RULES:
        return {policy.hebb_rule: arrays[0].ravel()}
    return {
        name: np.concatenate([array[:, place].ravel() for array in arrays])
        for place, name in enumerate(RULES[policy.hebb_rule])
    }


def synaptic_coefficients(
    policy: Hebbian, row: Float32[np.ndarray, " params"], buffers: Buffers
) -> Float32[np.ndarray, "synapses coefficients"]:
    """The coefficients of every synapse, layer by layer, within it by postsynaptic, then by presynaptic neuron.

    Not of rules per neuron, nor of neural rules.
    """
    arrays = _rule_arrays(policy, row)
    if policy.sharing == "synapse":
        return np.concatenate([array.swapaxes(1, 2).reshape(-1, array.shape[1]) for array in arrays])
    if policy.sharing == "clusters":
        found = clustered_tables(buffers, policy.plastic_shapes, policy.num_rules)
    else:
        found = tables(policy.sharing, policy.sizes, policy.num_rules)
    return arrays[0][0].T[np.concatenate([table.ravel() for table in found])]


def _rule_arrays(policy: Hebbian, row: Float32[np.ndarray, " params"]) -> list[Float32[np.ndarray, "_ _ _"]]:
    return [policy.layout.view(row[np.newaxis], name)[0] for name in policy.rule_arrays]
