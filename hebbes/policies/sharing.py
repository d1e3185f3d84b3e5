"""Sharing of learning rules: which synapses have a rule in common, as tables from synapses to sets of coefficients.

- synapse: one set a synapse (Najarro & Risi 2020, arXiv 2007.02686).
- modulo: synapse k takes set k mod n. k counts layer by layer, within it by presynaptic, then by postsynaptic neuron.
- layer, global: one set a layer, or in all.
- neuron: one set a neuron, for the synapses on both its sides. B is the presynaptic neuron's, C the postsynaptic one's,
  every other coefficient the product of both: after Ferigo, Cunegatti & Iacca 2024, "Neuron-centric Hebbian Learning",
  arXiv 2403.12076, but eta is a product too.
- clusters: the set that the policy's buffer `rule_table.<layer>` names for each synapse; `hebbes.policies.rule_merging` makes
  it (Pedersen & Risi 2021, "Evolving and merging Hebbian learning rules", arXiv 2104.07959).
"""

from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate, pairwise
from typing import TypeAlias

import numpy as np
from jaxtyping import Int, UInt32

from hebbes.contracts.policy import Buffers

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


def _modulo(sizes: Sequence[int], num_rules: int) -> list[np.ndarray]:
    return [numbers[None] % num_rules for numbers in _numbers(sizes)]


def _layer(sizes: Sequence[int], num_rules: int) -> list[np.ndarray]:
    return [np.full((1, *numbers.shape), layer) for layer, numbers in enumerate(_numbers(sizes))]


def _global(sizes: Sequence[int], num_rules: int) -> list[np.ndarray]:
    return [np.zeros((1, *numbers.shape)) for numbers in _numbers(sizes)]


def _neuron(sizes: Sequence[int], num_rules: int) -> list[np.ndarray]:
    ends = list(accumulate(sizes))
    neurons = [np.arange(end - size, end) for end, size in zip(ends, sizes, strict=True)]
    return [np.stack(np.broadcast_arrays(pre, post[:, None])) for pre, post in pairwise(neurons)]


_TABLES: dict[str, Callable[[Sequence[int], int], list[np.ndarray]]] = {
    "modulo": _modulo,
    "layer": _layer,
    "global": _global,
    "neuron": _neuron,
}
SHARINGS = ("synapse", *_TABLES, "clusters")


def count_sets(sharing: str, sizes: Sequence[int], num_rules: int) -> int:
    """How many sets of coefficients the synapses share; not for "synapse"."""
    return {"layer": len(sizes) - 1, "global": 1, "neuron": sum(sizes)}.get(sharing, num_rules)


def tables(sharing: str, sizes: Sequence[int], num_rules: int) -> list[Table]:
    """Each layer's table; not for "synapse", which needs none, nor for "clusters", whose tables are buffers.

    Tables of "neuron" have two factors, the presynaptic neuron and the postsynaptic one; the others have one.
    """
    return [np.ascontiguousarray(table, np.uint32) for table in _TABLES[sharing](sizes, num_rules)]


def table_buffer(layer: str) -> str:
    """The buffer that holds a layer's table of "clusters"."""
    return f"rule_table.{layer}"


def clustered_tables(buffers: Buffers, shapes: Mapping[str, tuple[int, ...]], num_rules: int) -> list[Table]:
    """The tables of "clusters" for layers of these shapes (out, in), by name.

    Raises:
        ValueError: a table is missing, or not a uint32 number below `num_rules` for each synapse. Kernels check no
            bounds, so that this has to.
    """
    found = []
    for layer, shape in shapes.items():
        name = table_buffer(layer)
        if name not in buffers:
            raise ValueError(
                f"sharing clusters needs the buffer {name}, which says which rule each synapse has: `hebbes merge` "
                "makes policies with it, to start from with init_from"
            )
        table = buffers[name]
        if table.dtype != np.uint32 or table.shape != shape:
            raise ValueError(f"{name}: got {table.dtype} of shape {table.shape}, expected uint32 of shape {shape}")
        if table.max() >= num_rules:
            raise ValueError(f"{name}: got rule {table.max()}, the rules are 0 to {num_rules - 1}")
        found.append(np.ascontiguousarray(table)[np.newaxis])
    return found
