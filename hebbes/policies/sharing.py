"""Sharing of learning rules: tables that tell which synapses use the same set of coefficients.

- synapse: one set per synapse (Najarro & Risi 2020, arXiv 2007.02686).
- modulo: synapse k uses set k mod n. k counts layer by layer, in a layer by presynaptic, then by postsynaptic neuron.
- layer, global: one set per layer, or a single set.
- neuron: one set per neuron, for the synapses on both its sides. B is the presynaptic neuron's, C the postsynaptic
  neuron's, every other coefficient the product of both. After Ferigo, Cunegatti & Iacca 2024, "Neuron-centric Hebbian
  Learning", arXiv 2403.12076, but eta is a product too.
- clusters: the policy's buffer `rule_table.<layer>` names the set of each synapse. `hebbes.policies.rule_merging` makes
  the buffer (Pedersen & Risi 2021, "Evolving and merging Hebbian learning rules", arXiv 2104.07959).
"""

from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate, pairwise
from typing import TypeAlias

import numpy as np
from jaxtyping import Int, UInt32

from hebbes.contracts.policy import Buffers

Table: TypeAlias = UInt32[np.ndarray, "_factors _out _in"]
"""For each synapse of a layer, the numbers of its sets."""


def _number_synapses(sizes: Sequence[int]) -> list[Int[np.ndarray, "_out _in"]]:
    """The number k of every synapse, one array per layer."""
    counts = [num_inputs * num_outputs for num_inputs, num_outputs in pairwise(sizes)]
    starts = accumulate(counts, initial=0)
    return [
        start + np.arange(count).reshape(num_inputs, num_outputs).T
        for start, count, (num_inputs, num_outputs) in zip(starts, counts, pairwise(sizes), strict=False)
    ]


def _make_neuron_tables(sizes: Sequence[int], num_rules: int) -> list[np.ndarray]:
    ends = list(accumulate(sizes))
    neurons = [np.arange(end - size, end) for end, size in zip(ends, sizes, strict=True)]
    return [np.stack(np.broadcast_arrays(pre, post[:, None])) for pre, post in pairwise(neurons)]


_TABLES: dict[str, Callable[[Sequence[int], int], list[np.ndarray]]] = {
    "modulo": lambda sizes, num_rules: [k[None] % num_rules for k in _number_synapses(sizes)],
    "layer": lambda sizes, num_rules: [np.full((1, *k.shape), n) for n, k in enumerate(_number_synapses(sizes))],
    "global": lambda sizes, num_rules: [np.zeros((1, *k.shape)) for k in _number_synapses(sizes)],
    "neuron": _make_neuron_tables,
}
SHARINGS = ("synapse", *_TABLES, "clusters")


def count_sets(sharing: str, sizes: Sequence[int], num_rules: int) -> int:
    """The number of sets of coefficients. Not for sharing "synapse"."""
    return {"layer": len(sizes) - 1, "global": 1, "neuron": sum(sizes)}.get(sharing, num_rules)


def make_tables(sharing: str, sizes: Sequence[int], num_rules: int) -> list[Table]:
    """Each layer's table. Not for "synapse", which needs none, nor for "clusters", whose tables are buffers.

    Tables of "neuron" have two factors, the presynaptic and the postsynaptic neuron. The others have one.
    """
    return [np.ascontiguousarray(table, np.uint32) for table in _TABLES[sharing](sizes, num_rules)]


def format_table_name(layer: str) -> str:
    """The name of the buffer that holds a layer's table of "clusters"."""
    return f"rule_table.{layer}"


def read_cluster_tables(buffers: Buffers, shapes: Mapping[str, tuple[int, ...]], num_rules: int) -> list[Table]:
    """The tables of "clusters" from the buffers, for layers with these shapes (out, in) by name.

    Raises:
        ValueError: a table is missing, or does not hold a uint32 below `num_rules` for each synapse. Kernels do not
            check bounds.
    """
    found = []
    for layer, shape in shapes.items():
        name = format_table_name(layer)
        if name not in buffers:
            raise ValueError(
                f"sharing clusters needs the buffer {name}, which names the rule of each synapse: make a policy file "
                "with `hebbes merge` and start from it with init_from"
            )
        table = buffers[name]
        if table.dtype != np.uint32 or table.shape != shape:
            raise ValueError(f"{name}: got {table.dtype} of shape {table.shape}, expected uint32 of shape {shape}")
        if table.max() >= num_rules:
            raise ValueError(f"{name}: got rule {table.max()}, the rules are 0 to {num_rules - 1}")
        found.append(np.ascontiguousarray(table)[np.newaxis])
    return found
