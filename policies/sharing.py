"""Sharing of learning rules: which synapses have a rule in common, as tables from synapses to sets of coefficients.

- synapse: one set a synapse (Najarro & Risi 2020, arXiv 2007.02686).
- modulo: synapse k takes set k mod n. k counts layer by layer, within it by presynaptic, then by postsynaptic neuron.
- layer, global: one set a layer, or in all.
- neuron: one set a neuron, for the synapses on both its sides. B is the presynaptic neuron's, C the postsynaptic one's,
  every other coefficient the product of both: after Ferigo, Cunegatti & Iacca 2024, "Neuron-centric Hebbian Learning",
  arXiv 2403.12076, but eta is a product too.
"""

from collections.abc import Callable, Sequence
from itertools import accumulate, pairwise
from typing import TypeAlias

import numpy as np
from jaxtyping import Int, UInt32

Table: TypeAlias = UInt32[np.ndarray, "factors out in"]
"""Numbers of the sets of each synapse."""


def _numbers(sizes: Sequence[int]) -> list[Int[np.ndarray, "out in"]]:
    """Every synapse's number k, layer by layer."""
    counts = [num_inputs * num_outputs for num_inputs, num_outputs in pairwise(sizes)]
    starts = accumulate(counts, initial=0)
    return [
        start + np.arange(count).reshape(num_inputs, num_outputs).T
        for start, count, (num_inputs, num_outputs) in zip(starts, counts, pairwise(sizes), strict=False)
    ]


def _modulo(sizes: Sequence[int], num_rules: int) -> tuple[int, list[np.ndarray]]:
    return num_rules, [numbers[None] % num_rules for numbers in _numbers(sizes)]


def _layer(sizes: Sequence[int], num_rules: int) -> tuple[int, list[np.ndarray]]:
    return len(sizes) - 1, [np.full((1, *numbers.shape), layer) for layer, numbers in enumerate(_numbers(sizes))]


def _global(sizes: Sequence[int], num_rules: int) -> tuple[int, list[np.ndarray]]:
    return 1, [np.zeros((1, *numbers.shape)) for numbers in _numbers(sizes)]


def _neuron(sizes: Sequence[int], num_rules: int) -> tuple[int, list[np.ndarray]]:
    ends = list(accumulate(sizes))
    neurons = [np.arange(end - size, end) for end, size in zip(ends, sizes, strict=True)]
    return ends[-1], [np.stack(np.broadcast_arrays(pre, post[:, None])) for pre, post in pairwise(neurons)]


_SHARED: dict[str, Callable[[Sequence[int], int], tuple[int, list[np.ndarray]]]] = {
    "modulo": _modulo,
    "layer": _layer,
    "global": _global,
    "neuron": _neuron,
}
SHARINGS = ("synapse", *_SHARED)


def sets_and_tables(sharing: str, sizes: Sequence[int], num_rules: int) -> tuple[int, list[Table]]:
    """How many sets of coefficients there are, and each layer's table; not for "synapse", which needs none.

    Tables of "neuron" have two factors, the presynaptic neuron and the postsynaptic one; the others have one.
    """
    num_sets, tables = _SHARED[sharing](sizes, num_rules)
    return num_sets, [np.ascontiguousarray(table, np.uint32) for table in tables]
