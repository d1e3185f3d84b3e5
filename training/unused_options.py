"""Options without effect: those that the other options of a run leave unused.

A field's metadata may say under `needs` when it is used: other options by flag, each with the values with which it is,
no values standing for any but the default. One of these options is enough; one that the run does not have is no matter.
"""

from collections.abc import Collection, Sequence
from dataclasses import fields
from typing import Any

from training.config import TrainConfig
from training.option import flag_name


def check_used(config: TrainConfig, typed: Collection[str]) -> None:
    """Refuses, with ValueError, flags of the command line that this run would not use, but for those at their default.

    Files are not checked: a run writes the options that it does not use too. `--policy auto` counts as each of the
    policies that it may become.
    """
    unused, values = unused_options(config), config.as_options()
    defaults = {flag_name(each): each.default for owner in (config, config.settings) for each in fields(owner)}
    for name in typed:
        if name in unused and values[name] != defaults[name]:
            raise ValueError(f"--{name} is only used with {unused[name]}")


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
        if needs and not any(_is_met(value, default, values) for _, default, value, values in needs):
            found[name] = " or ".join(_text(other, default, values) for other, default, _, values in needs)
    return found


def _is_met(value: Any, default: Any, values: Sequence[Any]) -> bool:
    if not values:
        return bool(value != default)
    return value in values or (isinstance(value, str) and ":" in value)  # a user's own class may use anything


def _text(flag: str, default: Any, values: Sequence[Any]) -> str:
    if values:
        return f"--{flag} {', '.join(map(str, values))}"
    return f"--{flag}" if default is None else f"--{flag} other than {default:g}"
