"""The options of each training program."""

from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import Any

from hebbes.contracts.option import option
from hebbes.policies.hebbian import Hebbian
from hebbes.training.config import TrainConfig


def _as_in(policy: type, name: str) -> Any:
    """The option that is this field of a policy."""
    (found,) = (each for each in fields(policy) if each.name == name)
    told = found.metadata
    return option(found.default, told["help"], choices=told.get("choices", ()), needs=told.get("needs"))


@dataclass(frozen=True)
class HebbianConfig(TrainConfig):
    """Options of a run that evolves plasticity."""

    policy: str = option("hebbian", "policy by name, or package.module:Class")
    hebb_rule: str = _as_in(Hebbian, "hebb_rule")
    init_weights: str = _as_in(Hebbian, "init_weights")
    normalisation: str = _as_in(Hebbian, "normalisation")
    output_activity: str = _as_in(Hebbian, "output_activity")
    update_every: int = _as_in(Hebbian, "update_every")
    sharing: str = _as_in(Hebbian, "sharing")
    num_rules: int = _as_in(Hebbian, "num_rules")
    modulation: str = _as_in(Hebbian, "modulation")
    eligibility: bool = _as_in(Hebbian, "eligibility")
    distribution: str = _as_in(Hebbian, "distribution")


TRAINERS = {"static": TrainConfig, "hebbian": HebbianConfig}
"""By program; presets lie in configs/PROGRAM."""


def trainer_of(options: Iterable[str]) -> str:
    """The training program that these options are of, as far as their names tell."""
    given = set(options)
    own = {name: {each.name for each in fields(owner)} for name, owner in TRAINERS.items()}
    return max(TRAINERS, key=lambda name: len(given & own[name]) - len(own[name] - given))
