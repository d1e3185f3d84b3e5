"""Options without effect: those that the other options of a run leave unused.

A field's metadata may say under `needs` when it is used: other options by flag, each with the values with which it is,
no values standing for any but the default. One of these options is enough; one that the run does not have is no matter.
"""

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

from training.config import TrainConfig, flag_name


def check_used(config: TrainConfig, given: Mapping[str, Any], in_file: Mapping[str, Any]) -> None:
    """Refuses, with ValueError, options that somebody typed and this run would not use; turning one off is no use.

    Args:
        given: options of the command line, by flag.
        in_file: those of a `--config`. One with all of them was written by a run, or by `--print_config`, and passes.
    """
    unused = unused_options(config)
    written = config.as_options().keys() <= in_file.keys()
    for name, value in (given if written else {**in_file, **given}).items():
        if name in unused and value is not None and value is not False:
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
