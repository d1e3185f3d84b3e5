"""Merging of similar learning rules: the synapses of a cluster get the cluster's mean rule.

Pedersen & Risi 2021, "Evolving and merging Hebbian learning rules increases generalization by decreasing the number of
rules", arXiv 2104.07959: k-means over the coefficients of all synapses. This module merges once. The authors merge
step by step: for that, train and merge again. Clusters start by k-means++ (Arthur & Vassilvitskii 2007, SODA).
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise
from math import prod

import numpy as np
from jaxtyping import Float, Float32, Int
from scipy.cluster.vq import vq

from hebbes.contracts.policy import Buffers
from hebbes.policies.coefficients import read_synaptic_coefficients
from hebbes.policies.hebbian import Hebbian
from hebbes.policies.learning_rules import RULES
from hebbes.policies.sharing import format_table_name

MERGEABLE = ("synapse", "modulo", "clusters")
ITERATIONS = 50
_MOST_DISTANCES = 2**24
"""That are in memory at the same time."""


@dataclass(frozen=True)
class MergeResult:
    """A policy with sharing `clusters`, its weights and buffers, and how far its rules are from the original ones."""

    policy: Hebbian
    weights: Float32[np.ndarray, " params"]
    buffers: Buffers
    error: float
    """Mean over synapses of the squared distance between their coefficients and those of their new rule."""
    variance: float
    """The same distance if there were only one rule."""


def merge_rules(
    policy: Hebbian, row: Float32[np.ndarray, " params"], buffers: Buffers, num_rules: int, rng: np.random.Generator
) -> MergeResult:
    """The policy with at most `num_rules` rules. There are fewer if a cluster stays empty or fewer rules differ.

    Raises:
        ValueError: the policy does not have a rule for each synapse, or `num_rules` exceeds the number of synapses.
    """
    if policy.hebb_rule not in RULES or policy.sharing not in MERGEABLE:
        raise ValueError(
            f"a policy with {policy.hebb_rule} and sharing {policy.sharing} has no rule for each synapse to merge; "
            f"sharing must be {', '.join(MERGEABLE[:-1])} or {MERGEABLE[-1]}"
        )
    coefficients = read_synaptic_coefficients(policy, row, buffers)
    if not 1 <= num_rules <= len(coefficients):
        raise ValueError(f"num_rules must be 1 to the number of synapses, {len(coefficients)}, got {num_rules}")
    points = coefficients.astype(np.float64)
    rules, numbers = _find_clusters(points, num_rules, rng)
    slices = [policy.layout.slices[name] for name in policy.rule_arrays]
    return MergeResult(
        policy=replace(policy, sharing="clusters", num_rules=len(rules)),
        weights=np.concatenate([row[: slices[0].start], rules.T.ravel().astype(np.float32), row[slices[-1].stop :]]),
        buffers={**buffers, **_make_tables(numbers, policy.plastic_shapes)},
        error=_mean_square(points - rules[numbers]),
        variance=_mean_square(points - points.mean(axis=0)),
    )


def _make_tables(numbers: Int[np.ndarray, " synapses"], shapes: Mapping[str, tuple[int, ...]]) -> dict[str, np.ndarray]:
    ends = accumulate((prod(shape) for shape in shapes.values()), initial=0)
    return {
        format_table_name(layer): numbers[start:end].reshape(shape).astype(np.uint32)
        for (layer, shape), (start, end) in zip(shapes.items(), pairwise(ends), strict=True)
    }


def _find_clusters(
    points: Float[np.ndarray, "synapses coefficients"], count: int, rng: np.random.Generator
) -> tuple[Float[np.ndarray, "rules coefficients"], Int[np.ndarray, " synapses"]]:
    """Centroids, and the number of each point's centroid. Every centroid is the mean of at least one point.

    Lloyd's iterations. SciPy's `kmeans2` has the distances of all points to all centroids in memory.
    """
    centroids = _draw_distant_points(points, count, rng)
    for _ in range(ITERATIONS):
        numbers = _find_nearest(points, centroids)
        counts = np.bincount(numbers, minlength=len(centroids))
        sums = np.stack([np.bincount(numbers, column, minlength=len(centroids)) for column in points.T], axis=1)
        centroids = np.where(counts[:, None], sums / np.maximum(counts, 1)[:, None], centroids)
    used, numbers = np.unique(numbers, return_inverse=True)
    return centroids[used], numbers


def _find_nearest(
    points: Float[np.ndarray, "synapses coefficients"], centroids: Float[np.ndarray, "rules coefficients"]
) -> Int[np.ndarray, " synapses"]:
    """The number of each point's nearest centroid."""
    size = max(1, _MOST_DISTANCES // len(centroids))
    return np.concatenate([vq(points[start : start + size], centroids)[0] for start in range(0, len(points), size)])


def _draw_distant_points(
    points: Float[np.ndarray, "synapses coefficients"], count: int, rng: np.random.Generator
) -> Float[np.ndarray, "count coefficients"]:
    """Different points drawn by k-means++, at most `count`.

    The probability of each is proportional to its squared distance from the nearest point drawn before.
    """
    chosen = [points[rng.integers(len(points))]]
    squares = np.square(points - chosen[0]).sum(axis=1)
    while len(chosen) < count and squares.any():
        chosen.append(points[rng.choice(len(points), p=squares / squares.sum())])
        squares = np.minimum(squares, np.square(points - chosen[-1]).sum(axis=1))
    return np.stack(chosen)


def _mean_square(distances: Float[np.ndarray, "synapses coefficients"]) -> float:
    return float(np.square(distances).sum(axis=1).mean())
