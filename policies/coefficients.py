"""The coefficients of a plastic network's rules, by their names."""

import numpy as np
from jaxtyping import Float32

from policies.hebbian import Hebbian
from policies.neural_rule import NEURAL_RULES
from policies.plasticity import RULES


def coefficients_by_name(
    policy: Hebbian, weights: Float32[np.ndarray, " params"]
) -> dict[str, Float32[np.ndarray, " sets"]]:
    """All sets' numbers for each coefficient (A, B, ...), in the order of the rule.

    The numbers of a neural rule are under the rule's name. Of rules per neuron these are the factors of pre and post,
    whose products are the coefficients.
    """
    arrays = [policy.layout.view(weights[np.newaxis], name)[0] for name in policy.layout.shapes if _is_rules(name)]
    if policy.hebb_rule in NEURAL_RULES:
        return {policy.hebb_rule: arrays[0].ravel()}
    if policy.sharing != "synapse":
        return dict(zip(RULES[policy.hebb_rule], arrays[0], strict=True))
    return {
        name: np.concatenate([array[:, place].ravel() for array in arrays])
        for place, name in enumerate(RULES[policy.hebb_rule])
    }


def _is_rules(name: str) -> bool:
    return name == "rules" or name.endswith("_rules")
