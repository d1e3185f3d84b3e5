"""Presets: options for an environment, in hebbes/presets/.

`hebbes/presets/<trainer>/<Env>.yaml`, or `<Env>.<variant>.yaml`, holds what was tuned for one environment and trainer.
`hebbes/presets/shared/*.yaml` holds what every trainer needs for the environments that a file lists: the conventions of the
code that the toolkit stands for, with which files of that code are played too.
"""

from collections.abc import Collection
from pathlib import Path
from typing import Any

from hebbes.files.option_file import read_yaml
from hebbes.registry.lookup import did_you_mean
from hebbes.training.config import NO_PRESET

PRESETS = Path(__file__).resolve().parent.parent / "presets"
ENVIRONMENTS = "environments"
"""The key under which a shared preset lists the environments that it is for; it is no option."""


def preset_path(trainer: str, environment: str, variant: str | None) -> Path | None:
    """The preset of an environment, None if it has none; ValueError for a variant that does not exist."""
    if variant == NO_PRESET:
        return None
    stem = environment.replace("/", "_")
    path = PRESETS / trainer / (f"{stem}.{variant}.yaml" if variant else f"{stem}.yaml")
    if path.exists():
        return path
    if variant:
        found = sorted(p.name.removesuffix(".yaml")[len(stem) + 1 :] for p in path.parent.glob(f"{stem}.*.yaml"))
        known = f"preset must be one of {', '.join((*found, NO_PRESET))} for {environment}"
        raise ValueError(f"{known}, got {variant!r}{did_you_mean(variant, found)}")
    return None


def shared_options(environment: str, known: Collection[str]) -> dict[str, Any]:
    """What all trainers share for an environment, as far as the options are known to this one; empty if nothing."""
    for path in sorted((PRESETS / "shared").glob("*.yaml")):
        options = read_yaml(path)
        if environment in options.pop(ENVIRONMENTS):
            return {name: value for name, value in options.items() if name in known}
    return {}
