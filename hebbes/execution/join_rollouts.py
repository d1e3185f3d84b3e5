"""Joins the rollouts of groups of members."""

import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar

import numpy as np

from hebbes.contracts.engine import Rollouts

Number = TypeVar("Number", int, float)


def join_rollouts(chunks: Sequence[Rollouts]) -> Rollouts:
    """The rollouts of all members from those of consecutive groups, in member order."""
    return Rollouts(
        returns=np.concatenate([chunk.returns for chunk in chunks]),
        env_steps=np.concatenate([chunk.env_steps for chunk in chunks]),
        mean_squared_weights=np.concatenate([chunk.mean_squared_weights for chunk in chunks]),
        moments=tuple(itertools.chain.from_iterable(chunk.moments for chunk in chunks)),
        transitions=tuple(itertools.chain.from_iterable(chunk.transitions for chunk in chunks)),
        faults=dict(sorted(sum_entries(chunk.faults for chunk in chunks).items())),
        tallies=sum_entries(chunk.tallies for chunk in chunks),
    )


def sum_entries(parts: Iterable[Mapping[str, Number]]) -> dict[str, Number]:
    """The sum of each entry over all parts, in the order in which the entries first occur."""
    total: dict[str, Number] = {}
    for part in parts:
        for name, value in part.items():
            total[name] = total[name] + value if name in total else value
    return total
