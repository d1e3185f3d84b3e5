"""Files of options: presets, `--config`, and the config.yaml of a run."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from hebbes.contracts.errors import join_lines
from hebbes.contracts.yaml_text import parse_yaml

CONFIG_YAML = "config.yaml"
"""The file of a run's options in its folder."""

MEASURED = "measured"
"""The key of a preset's measured score. It is not an option."""

MAX_CHARACTERS = 1_000_000

NAMING_FILES = [f"{owner}{name}" for owner in ("", "run.") for name in ("resume", "config", "preset")]

COMMAND_LINE_ONLY = {"config", "run.config", "resume", "run.resume", "print_config", "help", "help_all"}


def read_yaml(path: Path) -> dict[str, Any]:
    """The options in a YAML file, without the preset's measured score. Raises ValueError that names the file."""
    found = drop_unnamed_files(_read_mapping(path))
    found.pop(MEASURED, None)
    return found


def drop_unnamed_files(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options without those that name a file and are None, which are as if they were not given."""
    return {name: value for name, value in options.items() if value is not None or name not in NAMING_FILES}


def has_measured_score(path: Path) -> bool:
    """Whether this is a preset with a measured score. False for any other file."""
    try:
        return bool(read_measured_score(path))
    except ValueError:
        return False


def read_measured_score(path: Path) -> str:
    """A preset's measured score, in words; empty if it has none. Raises ValueError that names the file."""
    return str(_read_mapping(path).get(MEASURED, ""))


def _read_mapping(path: Path) -> dict[str, Any]:
    try:
        with path.open(encoding="utf-8") as file:
            text = file.read(MAX_CHARACTERS + 1)  # a device may never end
        if len(text) > MAX_CHARACTERS:
            raise ValueError(f"{path} has more than {MAX_CHARACTERS} characters: it is no file of options")
        found = parse_yaml(text)
    except OSError as error:
        raise ValueError(f"cannot read {path}: {error.strerror}") from error
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as error:
        where = join_lines(error).replace(' in "<unicode string>",', " at")
        raise ValueError(f"{path} is not valid YAML: {where}") from error
    if not isinstance(found, dict) or not all(isinstance(key, str) for key in found):
        raise ValueError(f"{path} must hold a mapping of options")
    if not COMMAND_LINE_ONLY.isdisjoint(found):
        raise ValueError(f"{path}: {', '.join(sorted(COMMAND_LINE_ONLY & set(found)))} belongs on the command line")
    return found
