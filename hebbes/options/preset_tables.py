"""The tables of docs/presets.md, one row for each preset."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hebbes.contracts.yaml_text import parse_yaml
from hebbes.files.option_file import MEASURED
from hebbes.options.presets import ANY, PRESETS
from hebbes.registry.lookup import list_names
from hebbes.training.owners import find_trainer, list_fixed_owners


def format_presets() -> str:
    """One table for each trainer, in Markdown."""
    return "\n".join(line for trainer in list_names("trainer") for line in _format_table(trainer))


def _format_table(trainer: str) -> list[str]:
    found = find_trainer(trainer)
    defaults = {each.short_name: each.default for owner in list_fixed_owners(trainer) for each in owner.options}
    defaults, kind = {**defaults, **found.defaults}, found.method_kind
    files = sorted((PRESETS / trainer).glob("*.yaml"), key=lambda path: path.stem)
    rows = [_format_row(path, kind, defaults) for path in files]
    header = [f"| environment | `--preset` | {kind} | length | measured |", "|---|---|---|---|---|"]
    return [f"## {trainer.capitalize()}", "", *header, *rows, ""]


def _format_row(path: Path, kind: str, defaults: Mapping[str, Any]) -> str:
    options = {**defaults, **parse_yaml(path.read_text())}
    environment, _, variant = path.stem.partition(".")
    env_steps, generations = options["max_env_steps"], options.get("generations")
    length = f"{env_steps:,} env steps" if env_steps else f"{generations} generations"
    cells = ("all" if environment == ANY else environment, variant and f"`{variant}`", f"`{options[kind]}`", length)
    return f"| {' | '.join((*cells, options[MEASURED]))} |"
