"""Merging of learning rules that are alike: synapses come to share the mean rule of their cluster.

Pedersen & Risi 2021, "Evolving and merging Hebbian learning rules increases generalization by decreasing the number of
rules", arXiv 2104.07959: k-means over the coefficients of all synapses. Here once; to merge step by step, as the
authors do, train and merge again. Starts of the clusters: k-means++ (Arthur & Vassilvitskii 2007, SODA).
"""

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise
from math import prod

import numpy as np
from jaxtyping import Float, Float32, Int
from scipy.cluster.vq import kmeans2

from hebbes.contracts.policy import Buffers
from hebbes.policies.coefficients import synaptic_coefficients
from hebbes.policies.hebbian import Hebbian
from hebbes.policies.kernels.plastic_layers import RULES
from hebbes.policies.sharing import table_buffer

MERGEABLE = ("synapse", "modulo", "clusters")
ITERATIONS = 50


@dataclass(frozen=True)
class Merged:
    """A policy with sharing clusters, what it acts with, and how well its rules stand for those merged."""

    policy: Hebbian
    weights: Float32[np.ndarray, " params"]
    buffers: Buffers
    error: float
    """Mean over synapses of the squared distance between their coefficients and those of their new rule."""
    variance: float
    """The same if there were one rule."""


def merged(
    policy: Hebbian,
    row: Float32[np.ndarray, " params"],
    buffers: Buffers,
    num_rules: int,
    rng: np.random.Generator,
) -> Merged:
    """The policy with at most `num_rules` rules; fewer where a cluster stays empty or as few rules differ.

    ValueError for a policy that has no rule for each synapse, and for more rules than synapses.
    """
    if policy.hebb_rule not in RULES or policy.sharing not in MERGEABLE:
        raise ValueError(
            f"a policy with {policy.hebb_rule} and sharing {policy.sharing} has no rule for each synapse to merge; "
            f"sharing must be {', '.join(MERGEABLE[:-1])} or {MERGEABLE[-1]}"
        )
    coefficients = synaptic_coefficients(policy, row, buffers)
    if not 1 <= num_rules <= len(coefficients):
        raise ValueError(f"num_rules must be 1 to the number of synapses, {len(coefficients)}, got {num_rules}")
    points = coefficients.astype(np.float64)
    rules, numbers = _clusters(points, num_rules, rng)
    slices = [policy.layout.slices[name] for name in policy.rule_arrays]
    return Merged(
        policy=replace(policy, sharing="clusters", num_rules=len(rules)),
        weights=np.concatenate([row[: slices[0].start], rules.T.ravel().astype(np.float32), row[slices[-1].stop :]]),
        buffers={**buffers, **_tables(numbers, policy.plastic_shapes)},
        error=_mean_square(points - rules[numbers]),
        variance=_mean_square(points - points.mean(axis=0)),
    )


def _tables(numbers: Int[np.ndarray, " synapses"], shapes: Mapping[str, tuple[int, ...]]) -> dict[str, np.ndarray]:
    ends = accumulate((prod(shape) for shape in shapes.values()), initial=0)
    return {
        table_buffer(layer): numbers[start:end].reshape(shape).astype(np.uint32)
        for (layer, shape), (start, end) in zip(shapes.items(), pairwise(ends), strict=True)
    }


def _clusters(
    points: Float[np.ndarray, "synapses coefficients"], count: int, rng: np.random.Generator
) -> tuple[Float[np.ndarray, "rules coefficients"], Int[np.ndarray, " synapses"]]:
    """Centroids, and the number of each point's; every centroid is the mean of at least one point."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "One of the clusters is empty")  # it is dropped below
        centroids, numbers = kmeans2(points, _distant_points(points, count, rng), ITERATIONS, minit="matrix")
    used, numbers = np.unique(numbers, return_inverse=True)
    return centroids[used], numbers


def _distant_points(
    points: Float[np.ndarray, "synapses coefficients"], count: int, rng: np.random.Generator
) -> Float[np.ndarray, "count coefficients"]:
    """Different points, each drawn with odds of its squared distance from the nearest before it; all if too few."""
    chosen = [points[rng.integers(len(points))]]
    squares = np.square(points - chosen[0]).sum(axis=1)
    while len(chosen) < count and squares.any():
        chosen.append(points[rng.choice(len(points), p=squares / squares.sum())])
        squares = np.minimum(squares, np.square(points - chosen[-1]).sum(axis=1))
    return np.stack(chosen)


def _mean_square(distances: Float[np.ndarray, "synapses coefficients"]) -> float:
    return float(np.square(distances).sum(axis=1).mean())
