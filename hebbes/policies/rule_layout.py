"""Where the learning rules of a plastic network lie in a row of parameters, and which layer reads which of them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import UInt32

from hebbes.contracts.policy import Buffers, Layout
from hebbes.policies.learning_rules import NEURAL_RULES, RULES, count_network_params
from hebbes.policies.sharing import Table, count_sets, make_tables, read_cluster_tables

COEFFICIENTS = ("A", "B", "C", "D", "eta", "D_out")
"""All coefficients of any rule, in the order in which kernels take them."""


@dataclass(frozen=True)
class LayerRule:
    """Where a row of parameters holds the rule of a layer."""

    start: int
    """First coefficient, or first parameter of a neural rule. The coefficients have shape (out, coefficients, in) with
    one set per synapse, so that memory is read in one stream. Shared, they have shape (coefficients, num_sets)."""
    columns: tuple[int | None, ...]
    """Place of each of COEFFICIENTS in a set. None for those that the rule lacks."""
    tables: tuple[UInt32[np.ndarray, "_factors out in"], ...] | None = None
    """For each place, the numbers of a synapse's sets. Its coefficient is the product of their values. None: one set
    per synapse."""
    num_sets: int = 0
    network: tuple[bool, bool] | None = None
    """For a neural rule, whether it has a second hidden layer, and whether it has biases. Its output is the coefficient
    D. None: not a neural rule."""


def find_columns(names: Sequence[str]) -> tuple[int | None, ...]:
    """Place of each of COEFFICIENTS in `names`, or None."""
    return tuple(names.index(name) if name in names else None for name in COEFFICIENTS)


@dataclass(frozen=True)
class RuleLayout:
    """The arrays of coefficients of one rule with one kind of sharing. The fields are those of `Hebbian`."""

    hebb_rule: str
    sharing: str
    num_rules: int
    sizes: tuple[int, ...]
    """Number of inputs of the first plastic layer, then the number of neurons of each plastic layer."""
    matrices: Mapping[str, tuple[int, ...]]
    """(out, in) of each plastic layer, by name."""

    @cached_property
    def shapes(self) -> dict[str, tuple[int, int, int]]:
        """Always three dimensions, even if one is 1: low-rank noise would correlate the coefficients of a matrix."""
        if self.hebb_rule in NEURAL_RULES:
            count = count_network_params(*NEURAL_RULES[self.hebb_rule])
            return {"rules": (1, len(self.matrices) if self.sharing == "layer" else 1, count)}
        names = RULES[self.hebb_rule]
        if unread := [name for name in names if name not in COEFFICIENTS]:
            raise ValueError(f"coefficients of learning rules are {', '.join(COEFFICIENTS)}, got {', '.join(unread)}")
        if self.sharing == "synapse":
            return {format_rules_name(layer): (out, len(names), into) for layer, (out, into) in self.matrices.items()}
        return {"rules": (1, len(names), count_sets(self.sharing, self.sizes, self.num_rules))}

    def find_rules(self, layout: Layout, buffers: Buffers) -> list[LayerRule]:
        """The rule of each layer, by its place in the network's layout. Only sharing `clusters` needs the buffers."""
        starts = {name: where.start for name, where in layout.slices.items()}
        if self.hebb_rule in NEURAL_RULES:
            _, num_sets, size = self.shapes["rules"]
            sets = [min(layer, num_sets - 1) for layer in range(len(self.matrices))]
            network = NEURAL_RULES[self.hebb_rule]
            return [
                LayerRule(starts["rules"] + number * size, find_columns(("D",)), network=network) for number in sets
            ]
        names = RULES[self.hebb_rule]
        if self.sharing == "synapse":
            return [LayerRule(starts[format_rules_name(layer)], find_columns(names)) for layer in self.matrices]
        num_sets = self.shapes["rules"][2]
        factors = {"B": slice(0, 1), "C": slice(-1, None)}  # of the presynaptic neuron, of the postsynaptic one
        tables = self.read_tables(buffers)
        by_name = [tuple(table[factors.get(name, slice(None))] for name in names) for table in tables]
        return [LayerRule(starts["rules"], find_columns(names), own, num_sets) for own in by_name]

    def read_tables(self, buffers: Buffers) -> list[Table]:
        """The table of each layer; those of sharing `clusters` are in the buffers. Not for sharing `synapse`."""
        if self.sharing == "clusters":
            return read_cluster_tables(buffers, self.matrices, self.num_rules)
        return make_tables(self.sharing, self.sizes, self.num_rules)


def format_rules_name(layer: str) -> str:
    """The name of a layer's array of coefficients, for sharing `synapse`."""
    return f"{layer}_rules"
