"""Converts the learning coefficients of Najarro & Risi's code (NeurIPS 2020, arXiv 2007.02686) to our layout."""

from math import prod

import numpy as np
from jaxtyping import Float, Float32

from hebbes.policies.hebbian import Hebbian
from hebbes.policies.learning_rules import RULES


def convert_reference_coefficients(
    policy: Hebbian, coefficients: Float[np.ndarray, "..."], evolved: Float[np.ndarray, "..."]
) -> Float32[np.ndarray, " params"]:
    """The row of parameters with which `policy` learns as the reference does with these coefficients.

    Args:
        policy: a policy with one set of coefficients for each synapse.
        coefficients: shape (synapses, coefficients), or the same flattened. A layer's row offset + n_out * i + j
            belongs to the synapse from i to j. The columns are those of `RULES`. The flattened form may begin with
            the kernels.
        evolved: the other parameters that the reference searches: first the kernels, unless `coefficients` begins with
            them, then the initial weights if they are searched. Empty if there are none. The reference's images have
            the axes (channels, width, height). This function does not swap them.

    Raises:
        ValueError: the arrays belong to another rule or network.
    """
    if policy.sharing != "synapse" or policy.hebb_rule not in RULES:
        raise ValueError(
            f"sharing must be synapse and hebb_rule one of {', '.join(RULES)}, as in Najarro & Risi's code, got "
            f"{policy.sharing} and {policy.hebb_rule}"
        )
    if policy.modulation != "none" or policy.eligibility:
        raise ValueError("modulation must be none and eligibility false, as in Najarro & Risi's code")
    names = RULES[policy.hebb_rule]
    layout = policy.layout
    shapes = {name: layout.shapes[name] for name in policy.rule_arrays}
    num_synapses = sum(num_outputs * num_inputs for num_outputs, _, num_inputs in shapes.values())
    num_evolved = layout.num_params - num_synapses * len(names)
    num_kernel = sum(prod(shape) for name, shape in layout.shapes.items() if name.startswith("conv"))
    expected = (num_synapses, len(names))
    if num_kernel and coefficients.shape == (num_kernel + prod(expected),):
        evolved = np.concatenate([coefficients[:num_kernel], evolved.ravel()])
        coefficients = coefficients[num_kernel:]
    if coefficients.shape not in (expected, (prod(expected),)):
        kernels = f", or {num_kernel + prod(expected)} numbers, the first {num_kernel} for kernels" * bool(num_kernel)
        raise ValueError(f"coefficients: got shape {coefficients.shape}, {policy.hebb_rule} takes {expected}{kernels}")
    if evolved.size != num_evolved:
        raise ValueError(
            f"path_coev: got {evolved.size} numbers, the network has {num_evolved} (more with init_weights coevolve)"
        )
    row = np.empty(layout.num_params, np.float32)
    row[:num_evolved] = evolved.ravel()
    table, first = coefficients.reshape(expected), 0
    for name, (num_outputs, _, num_inputs) in shapes.items():
        rows = table[first : first + num_inputs * num_outputs].reshape(num_inputs, num_outputs, len(names))
        row[layout.slices[name]] = rows.transpose(1, 2, 0).ravel()
        first += num_inputs * num_outputs
    return row
