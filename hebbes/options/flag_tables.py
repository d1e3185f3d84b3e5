"""The tables of flags in docs/flags.md."""

from collections.abc import Sequence

from hebbes.options.help import format_default, group_options
from hebbes.registry.former_names import SHORT_OPTIONS
from hebbes.registry.lookup import list_names
from hebbes.training.owners import OwnedOption, list_all_owners


def format_flags() -> str:
    """One table for each owner, or for all wrappers or loggers together, in Markdown."""
    groups = group_options(owner for trainer in list_names("trainer") for owner in list_all_owners(trainer))
    return "\n".join(line for title, options in groups.items() for line in _format_table(title.capitalize(), options))


def _format_table(title: str, options: Sequence[OwnedOption]) -> list[str]:
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
