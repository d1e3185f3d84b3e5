"""Writes the pages that are made from options, presets and metrics: `python -m hebbes.options.pages docs`."""

import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from hebbes.contracts.yaml_text import parse_yaml
from hebbes.files.atomic_file import write_atomically
from hebbes.files.option_file import MEASURED
from hebbes.options.help import format_default, group_options
from hebbes.options.presets import ANY, PRESETS
from hebbes.recording.metrics import METRICS
from hebbes.recording.progress_table import COLUMNS
from hebbes.registry.former_names import SHORT_OPTIONS
from hebbes.registry.lookup import list_names
from hebbes.training.owners import OwnedOption, find_trainer, list_all_owners, list_fixed_owners

MARK = "<!-- Below this line the page is made by `python -m hebbes.options.pages docs`. -->"


def format_flags() -> str:
    """One table for each owner, or for all wrappers or loggers together, in Markdown."""
    groups = group_options(owner for trainer in list_names("trainer") for owner in list_all_owners(trainer))
    return "\n".join(
        line for title, options in groups.items() for line in _format_flag_table(title.capitalize(), options)
    )


def _format_flag_table(title: str, options: Sequence[OwnedOption]) -> list[str]:
    rows = [f"| `--{each.short_name}` | {_format_cell(format_default(each))} | {_explain(each)} |" for each in options]
    return [f"## {title}", "", "| flag | default | meaning |", "|---|---|---|", *rows, ""]


def _format_cell(text: str) -> str:
    return f"`{text}`" if text else ""


def _explain(option: OwnedOption) -> str:
    metadata = option.field.metadata
    choices = ", ".join(f"`{choice}`" for choice in metadata.get("choices", ()))
    short = [f"short: `--{name}`" for name, current in SHORT_OPTIONS.items() if current == option.short_name]
    search = f"sweeps: {metadata['search']}" if metadata.get("search") else ""
    remarks = "; ".join(filter(None, (metadata.get("range", ""), choices, search, *short)))
    return metadata.get("help", "").replace("|", "\\|") + f" ({remarks})" * bool(remarks)


def format_presets() -> str:
    """One table for each trainer, in Markdown."""
    return "\n".join(line for trainer in list_names("trainer") for line in _format_preset_table(trainer))


def _format_preset_table(trainer: str) -> list[str]:
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


def format_metrics() -> str:
    """A table of the columns of metrics.csv, and of their headings where rows are printed, in Markdown."""
    printed = {name: f"`{column.title}`" for name, column in COLUMNS.items()}
    rows = [f"| `{name}` | {printed.get(name, '')} | {meaning} |" for name, meaning in METRICS.items()]
    return "\n".join(["## Columns", "", "| column | printed | meaning |", "|---|---|---|", *rows])


PAGES: dict[str, Callable[[], str]] = {
    "flags.md": format_flags,
    "logging.md": format_metrics,
    "presets.md": format_presets,
}
"""Page -> what makes the part of it below the mark."""


def main() -> None:
    """Replaces what follows the mark in the pages of the folder that the first argument names."""
    for name, make in PAGES.items():
        path = Path(sys.argv[1]) / name
        prose, _, _ = path.read_text().partition(MARK)
        write_atomically(path, f"{prose}{MARK}\n\n{make()}".encode())


if __name__ == "__main__":
    main()
