"""The options of each training program."""

from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import Any

from hebbes.contracts.option import option
from hebbes.policies.hebbian import Hebbian
from hebbes.registry.former_names import find_current_option_name
from hebbes.training.config import TrainConfig


def _copy_option(policy: type, name: str) -> Any:
    """The same option as this field of a policy class."""
    (field,) = (each for each in fields(policy) if each.name == name)
    metadata = field.metadata
    return option(field.default, metadata["help"], choices=metadata.get("choices", ()), needs=metadata.get("needs"))


@dataclass(frozen=True)
class HebbianConfig(TrainConfig):
    """Options of a run that evolves plasticity rules."""

    policy: str = option("hebbian", "policy by name, or package.module:Class")
    hebb_rule: str = _copy_option(Hebbian, "hebb_rule")
    init_weights: str = _copy_option(Hebbian, "init_weights")
    normalization: str = _copy_option(Hebbian, "normalization")
    output_activity: str = _copy_option(Hebbian, "output_activity")
    update_every: int = _copy_option(Hebbian, "update_every")
    sharing: str = _copy_option(Hebbian, "sharing")
    num_rules: int = _copy_option(Hebbian, "num_rules")
    modulation: str = _copy_option(Hebbian, "modulation")
    eligibility: bool = _copy_option(Hebbian, "eligibility")
    distribution: str = _copy_option(Hebbian, "distribution")


TRAINERS = {"static": TrainConfig, "hebbian": HebbianConfig}
"""Name of the training program -> its options. Presets are in hebbes/presets/PROGRAM."""


def find_trainer(options: Iterable[str]) -> str:
    """The name of the training program whose options match these names best."""
    own = {name: {each.name for each in fields(owner)} for name, owner in TRAINERS.items()}
    given = {find_current_option_name(name, set().union(*own.values())) for name in options}
    return max(TRAINERS, key=lambda name: len(given & own[name]) - len(own[name] - given))
