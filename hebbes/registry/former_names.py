"""Names in files and command lines of earlier versions, and the current names of the same things.

Names are mapped as text, before anything is imported or looked up.
"""

from collections.abc import Collection, Mapping
from typing import Any

from hebbes.registry.tables import TABLES

SHORT_OPTIONS = {
    "popsize": "population_size",
    "lr": "learning_rate",
    "decay": "learning_rate_decay",
}
"""Names that the sources' programs give to options -> ours. They are accepted without a notice."""

FORMER_OPTIONS = {
    "popsize_max": "population_size_max",
    "lr_schedule": "learning_rate_schedule",
    "lr_min": "learning_rate_min",
    "sigma_lr": "sigma_learning_rate",
    "normalisation": "normalization",
    "bodies": "morphologies",
}
"""Earlier names of this program's own -> current ones. They are accepted with a line of notice."""

FORMER_COLUMNS = {
    "unperturbed_return": "mean_policy_return",
    "unperturbed_rank": "mean_policy_rank",
    "lr": "learning_rate",
}
"""Earlier columns of metrics.csv -> current ones."""

_FORMER_PACKAGES = {"policy": "policies", "strategy": "strategies", "wrapper": "wrappers"}


def _compose_former_class_name(kind: str, stem: str) -> str:
    """The full name that a class of ours had before the package `hebbes`, such as "policies.mlp:Mlp"."""
    return f"{_FORMER_PACKAGES[kind]}.{stem}:{''.join(word.capitalize() for word in stem.split('_'))}"


FORMER_CLASSES = {
    _compose_former_class_name(kind, stem): name for kind, table in TABLES.items() for stem, name in table.items()
}
"""Earlier full names of classes, which files may hold -> current ones."""


def find_current_class_name(name: str) -> str:
    """The current full name of a class; the name itself if it never changed."""
    return FORMER_CLASSES.get(name, name)


def find_current_option_name(name: str, known: Collection[str]) -> str:
    """The current name of an option, if that is among the known ones; otherwise the name itself.

    A known name stays as it is: a user's own class may have an option with an earlier name of one of ours.
    """
    current = FORMER_OPTIONS.get(name) or SHORT_OPTIONS.get(name, name)
    return name if name in known or current not in known else current


def rename_options(options: Mapping[str, Any], known: Collection[str]) -> dict[str, Any]:
    """The options under their current names, as far as those are known."""
    renamed: dict[str, Any] = {}
    for name, value in options.items():
        current = find_current_option_name(name, known)
        if current in renamed:
            raise ValueError(f"{current} is given twice, under two of its names")
        renamed[current] = value
    return renamed
