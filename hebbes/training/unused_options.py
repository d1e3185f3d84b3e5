"""Options without effect: those that the other options of a run leave unused.

A field's metadata may say under `needs` when it is used: other options by flag, each with the values with which it is,
no values standing for any but the default. One of these options is enough; one that the run does not have is no matter.
A user's own policy uses the options that are fields of its class.
"""

from collections.abc import Sequence
from dataclasses import fields
from typing import Any

import yaml

from hebbes.contracts.option import flag_name
from hebbes.registry.lookup import lookup
from hebbes.training.config import NO_PRESET, TrainConfig


def check_used(config: TrainConfig) -> None:
    """Refuses, with ValueError, flags that were typed and that this run would not use, but for those at their default.

    Files are not checked: what one was written for may differ. `--policy auto` counts as each of the policies that it
    may become until it has become one.
    """
    unused, values = unused_options(config), config.as_options()
    defaults = {flag_name(each): each.default for owner in (config, config.settings) for each in fields(owner)}
    for name in sorted(config.typed & unused.keys()):
        if values[name] != defaults[name]:
            raise ValueError(f"--{name} is only used with {unused[name]}")


def as_yaml(config: TrainConfig) -> str:
    """The options that this run uses, under the names of their flags, as `--config` reads them back.

    No preset lies under them, or the run would change with its preset.
    """
    unused = unused_options(config)
    used = {name: value for name, value in config.as_options().items() if name not in unused}
    return yaml.safe_dump({"preset": NO_PRESET, **used}, sort_keys=False)


def unused_options(config: TrainConfig) -> dict[str, str]:
    """The options, by flag, that this run does not use; each with the options with which it would."""
    known = {flag_name(each): (each, owner) for owner in (config, config.settings) for each in fields(owner)}
    found = {}
    for name, (option, _) in known.items():
        needs = [
            (other, known[other][0].default, getattr(known[other][1], other), values)
            for other, values in option.metadata.get("needs", {}).items()
            if other in known
        ]
        if needs and not any(_is_met(name, value, default, values) for _, default, value, values in needs):
            found[name] = " or ".join(_text(other, default, values) for other, default, _, values in needs)
    return found


def _is_met(name: str, value: Any, default: Any, values: Sequence[Any]) -> bool:
    if not values:
        return bool(value != default)
    if isinstance(value, str) and ":" in value:  # a policy of the user's own
        return name in {each.name for each in fields(lookup("policy", value))}
    return value in values


def _text(flag: str, default: Any, values: Sequence[Any]) -> str:
    if values:
        return f"--{flag} {', '.join(str(value) for value in values if value != 'auto')}"
    return f"--{flag}" if default is None else f"--{flag} other than {default:g}"
