"""Finds options that have no effect, because of the values of other options.

The key `needs` of a field's metadata says when the option is used: it maps the flags of other options to the values
with which it is used. An empty list of values stands for any value except the default. It is enough that one of these
flags has such a value; flags that the run does not have are ignored. A user's own policy uses the options that are
fields of its class.
"""

from collections.abc import Sequence
from dataclasses import fields
from typing import Any

import yaml

from hebbes.contracts.option import get_flag_name
from hebbes.registry.lookup import find_class
from hebbes.training.config import NO_PRESET, TrainConfig


def check_typed_options(config: TrainConfig) -> None:
    """ValueError for a flag that was typed and has no effect in this run, unless it has its default value.

    Options from files are not checked, because a file may be written for several runs. As long as the policy is `auto`,
    an option counts as used if any policy that auto can stand for uses it.
    """
    unused, values = find_unused_options(config), config.as_options()
    defaults = {get_flag_name(each): each.default for owner in (config, config.settings) for each in fields(owner)}
    for name in sorted(config.typed & unused.keys()):
        if values[name] != defaults[name]:
            raise ValueError(f"--{name} is only used with {unused[name]}")


def format_as_yaml(config: TrainConfig) -> str:
    """YAML text of the options that this run uses, by flag, which `--config` can read.

    It turns presets off, so that a later change of a preset does not change the run.
    """
    unused = find_unused_options(config)
    used = {name: value for name, value in config.as_options().items() if name not in unused}
    return yaml.safe_dump({"preset": NO_PRESET, **used}, sort_keys=False)


def find_unused_options(config: TrainConfig) -> dict[str, str]:
    """Flag of each option that this run does not use -> text on the options with which it would."""
    known = {get_flag_name(each): (each, owner) for owner in (config, config.settings) for each in fields(owner)}
    found = {}
    for name, (option, _) in known.items():
        needs = [
            (other, known[other][0].default, getattr(known[other][1], other), values)
            for other, values in option.metadata.get("needs", {}).items()
            if other in known
        ]
        if needs and not any(_is_met(name, value, default, values) for _, default, value, values in needs):
            found[name] = " or ".join(_describe_need(other, default, values) for other, default, _, values in needs)
    return found


def _is_met(name: str, value: Any, default: Any, values: Sequence[Any]) -> bool:
    if not values:
        return bool(value != default)
    if isinstance(value, str) and ":" in value:  # a user's own policy
        return name in {each.name for each in fields(find_class("policy", value))}
    return value in values


def _describe_need(flag: str, default: Any, values: Sequence[Any]) -> str:
    if values:
        return f"--{flag} {', '.join(str(value) for value in values if value != 'auto')}"
    return f"--{flag}" if default is None else f"--{flag} other than {default:g}"
