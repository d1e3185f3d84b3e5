"""Presets: options for an environment, in hebbes/presets/.

`hebbes/presets/<trainer>/<Env>.yaml`, or `<Env>.<variant>.yaml`, holds options tuned for one environment and trainer.
Those under the name of a method, such as `aes_rl: {mean_scale: 48}`, are only for runs with that method.
`<trainer>/any.<variant>.yaml` is a variant for every environment.
`hebbes/presets/shared/*.yaml` holds options that all trainers share for the environments that a file lists. They are
the conventions of Najarro & Risi's code, and that code's own policy files are played with them too.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hebbes.contracts.suggestion import suggest_name
from hebbes.files.option_file import read_measured_score, read_yaml
from hebbes.registry.lookup import list_names
from hebbes.training.owners import choose_parts, find_trainer
from hebbes.training.run_options import NO_PRESET

PRESETS = Path(__file__).resolve().parent.parent / "presets"
ENVIRONMENTS = "environments"
"""The key under which a shared preset lists its environments; it is not an option."""
UNTUNED = "untuned"
"""What the measured score of a preset begins with that nobody has tuned, or measured over several seeds."""
ANY = "any"
"""Stands for every environment in the name of a variant."""


def find_preset(trainer: str, environment: str, variant: str | None) -> Path | None:
    """The path of an environment's preset, None if it has none; ValueError for a variant that does not exist."""
    if variant == NO_PRESET:
        return None
    folder, stem = PRESETS / trainer, environment.replace("/", "_")
    if variant is None:
        path = folder / f"{stem}.yaml"
        return path if path.exists() else None
    variants = {p.stem[len(each) + 1 :]: p for each in (ANY, stem) for p in folder.glob(f"{each}.*.yaml")}
    if variant not in variants:
        known = ", ".join(sorted(variants))
        others = f"{known} or {NO_PRESET}" if known else f"{NO_PRESET}, because {environment} has none with a name"
        raise ValueError(f"preset must be {others}, got {variant!r}{suggest_name(variant, sorted(variants))}")
    return variants[variant]


def describe_untuned(preset: Path | None) -> str:
    """What to say of an untuned preset without variant, if variants of the environment are tuned; empty otherwise."""
    if preset is None or _is_tuned(preset):
        return ""
    tuned = [path.stem.split(".")[1] for path in sorted(preset.parent.glob(f"{preset.stem}.*.yaml")) if _is_tuned(path)]
    names = " or ".join(tuned)
    return names and f"the preset of {preset.stem} is untuned; --preset {names} has settings whose return was measured"


def _is_tuned(preset: Path) -> bool:
    return not read_measured_score(preset).startswith(UNTUNED)


def read_preset(trainer: str, path: Path | None, named: Mapping[str, Any]) -> dict[str, Any]:
    """The options of a preset, with those for the run's method; empty without a preset.

    `named` holds the options by which the user chooses parts. Otherwise the method is the preset's own, or the default.
    """
    options, found = read_yaml(path) if path else {}, find_trainer(trainer)
    names = list_names(found.method_kind) if found.method_kind else ()
    by_method = {name: options.pop(name) for name in names if name in options}
    method = {**options, **named}.get(found.method_kind, choose_parts(trainer, found.Options).method)
    return options | by_method.get(method, {})


def read_shared_options(environment: str) -> dict[str, Any]:
    """The shared preset of an environment; empty if there is none."""
    for path in sorted((PRESETS / "shared").glob("*.yaml")):
        options = read_yaml(path)
        if environment in options.pop(ENVIRONMENTS):
            return options
    return {}
