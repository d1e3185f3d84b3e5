"""Presets: options for an environment, in hebbes/presets/.

`hebbes/presets/<trainer>/<Env>.yaml`, or `<Env>.<variant>.yaml`, holds options tuned for one environment and trainer.
`hebbes/presets/shared/*.yaml` holds options that all trainers share for the environments that a file lists. They are
the conventions of Najarro & Risi's code, and that code's own policy files are played with them too.
"""

from pathlib import Path
from typing import Any

from hebbes.contracts.suggestion import suggest_name
from hebbes.files.option_file import read_yaml
from hebbes.training.run_options import NO_PRESET

PRESETS = Path(__file__).resolve().parent.parent / "presets"
ENVIRONMENTS = "environments"
"""The key under which a shared preset lists its environments; it is not an option."""


def find_preset(trainer: str, environment: str, variant: str | None) -> Path | None:
    """The path of an environment's preset, None if it has none; ValueError for a variant that does not exist."""
    if variant == NO_PRESET:
        return None
    stem = environment.replace("/", "_")
    path = PRESETS / trainer / (f"{stem}.{variant}.yaml" if variant else f"{stem}.yaml")
    if path.exists():
        return path
    if variant:
        found = sorted(p.name.removesuffix(".yaml")[len(stem) + 1 :] for p in path.parent.glob(f"{stem}.*.yaml"))
        known = f"preset must be one of {', '.join((*found, NO_PRESET))} for {environment}"
        raise ValueError(f"{known}, got {variant!r}{suggest_name(variant, found)}")
    return None


def read_shared_options(environment: str) -> dict[str, Any]:
    """The shared preset of an environment; empty if there is none."""
    for path in sorted((PRESETS / "shared").glob("*.yaml")):
        options = read_yaml(path)
        if environment in options.pop(ENVIRONMENTS):
            return options
    return {}
