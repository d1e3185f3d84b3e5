"""Names in files and command lines of earlier versions, and the current names of the same things.

Names are mapped as text, before anything is imported or looked up.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from hebbes.registry.tables import TABLES

SHORT_OPTIONS = {"popsize": "population_size", "lr": "learning_rate", "decay": "learning_rate_decay"}
"""Names that the sources' programs give to options -> ours. They are accepted without a notice."""

FORMER_OPTIONS = {
    "popsize_max": "population_size_max",
    "lr_schedule": "learning_rate_schedule",
    "lr_min": "learning_rate_min",
    "sigma_lr": "sigma_learning_rate",
    "shape_lr": "shape_learning_rate",
    "normalisation": "normalization",
    "bodies": "morphologies",
    "evolution.max_env_steps": "training.max_env_steps",
    "evolution.stop_at_return": "training.stop_at_return",
    "evolution.max_episode_steps": "training.max_episode_steps",
    "evolution.eval_every": "training.eval_every",
    "evolution.eval_episodes": "training.eval_episodes",
}
"""Earlier names of this program's own -> current ones. They are accepted with a line of notice."""

MISSING_OPTIONS = {"early_stop_counts_grace": True}
"""Options that checkpoints of earlier versions lack, and the values with which these runs behaved as they did."""

FORMER_COLUMNS = {
    "unperturbed_return": "mean_policy_return",
    "unperturbed_rank": "mean_policy_rank",
    "lr": "learning_rate",
}
"""Earlier columns of metrics.csv -> current ones."""

FORMER_PACKAGES = ("contracts", "policies", "wrappers", "strategies", "rollouts", "reporting", "training")
"""Packages in which the code lay before it became one package. Users' own modules may still import from them."""

FORMER_CLASSES = {
    f"{place.split('.')[1]}.{name}:{name.title().replace('_', '')}": place
    for kind in ("policy", "strategy", "wrapper")
    for name, place in TABLES[kind].items()
}
"""Full names of classes that files from before the package hold, such as `strategies.cma_es:CmaEs`."""


def rename_columns(columns: Sequence[str]) -> list[str]:
    """The columns of a metrics.csv of an earlier version under their current names; those of any other as they are."""
    if "unperturbed_return" not in columns or not set(columns).isdisjoint(FORMER_COLUMNS.values()):
        return list(columns)  # every file of such a version has the former, and none has a current name
    return [FORMER_COLUMNS.get(name, name) for name in columns]


def find_current_class_name(name: Any) -> Any:
    """The current full name of a class that a file names; anything else as it is."""
    return FORMER_CLASSES.get(name, name) if isinstance(name, str) else name


def rename_classes(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options of a file, with the current names of the classes in them."""
    renamed = dict(options)
    for option in ("policy", "strategy"):
        if option in renamed:
            renamed[option] = find_current_class_name(renamed[option])
    for option in ("wrappers", "gymnasium_wrappers"):
        if isinstance(renamed.get(option), list | tuple):
            renamed[option] = type(renamed[option])(map(_rename_in_entry, renamed[option]))
    return renamed


def _rename_in_entry(entry: Any) -> Any:
    """A wrapper's name, or the mapping of its name to its arguments."""
    if isinstance(entry, dict):
        return {find_current_class_name(name): arguments for name, arguments in entry.items()}
    return find_current_class_name(entry)


def rename_arguments(wrapper_name: str, kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of a wrapper as today's class takes them.

    `resize` took a height and a width. `early_stop` counted the rewards within its grace period if nothing else was
    said.
    """
    renamed = dict(kwargs)
    if wrapper_name in ("resize", "hebbes.wrappers.resize:Resize") and {"height", "width"} <= renamed.keys():
        renamed["size"] = [renamed.pop("height"), renamed.pop("width")]
    if wrapper_name in ("early_stop", "hebbes.wrappers.early_stop:EarlyStop") and renamed.get("grace_steps"):
        renamed.setdefault("counts_grace", True)
    return renamed


def rename_saved_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options in a checkpoint of an earlier version: with the classes, wrappers' arguments and values of today."""
    lack = {name: value for name, value in MISSING_OPTIONS.items() if name.replace("stop_", "stop.") not in options}
    renamed = rename_classes({**lack, **options})
    for name in ("wrappers", "gymnasium_wrappers"):
        if isinstance(renamed.get(name), list | tuple):
            renamed[name] = [_rename_arguments_in_entry(entry) for entry in renamed[name]]
    return renamed


def _rename_arguments_in_entry(entry: Any) -> Any:
    if isinstance(entry, dict):
        return {
            name: rename_arguments(name, given) if isinstance(given, dict) else given for name, given in entry.items()
        }
    return entry


def find_current_option_name(name: str, known: Collection[str]) -> str:
    """The current name of an option, if that is among the known ones; otherwise the name itself.

    A known name stays as it is: a user's own class may have an option with an earlier name of one of ours.
    """
    current = FORMER_OPTIONS.get(name) or SHORT_OPTIONS.get(name, name)
    return name if name in known or current not in known else current


def rename_options(options: Mapping[str, Any], known: Collection[str]) -> dict[str, Any]:
    """The options under their current names, as far as those are known."""
    return {find_current_option_name(name, known): value for name, value in options.items()}
