"""Files of options: presets, `--config`, and the config.yaml of a run."""

from pathlib import Path
from typing import Any

import yaml

MEASURED = "measured"
"""The key under which a preset says what it scored; it is no option."""

COMMAND_LINE_ONLY = {"config", "resume", "print_config", "help"}


def read_yaml(path: Path) -> dict[str, Any]:
    """The mapping in a YAML file, without its note on what it measured; ValueError names the file."""
    try:
        text = path.read_text()
        if any(isinstance(event, yaml.AliasEvent) for event in yaml.parse(text, Loader=yaml.SafeLoader)):
            raise ValueError(f"{path}: YAML aliases (*name) are not taken, a few of them can stand for gigabytes")
        root, found = yaml.compose(text, Loader=yaml.SafeLoader), yaml.safe_load(text)
    except OSError as error:
        raise ValueError(f"cannot read {path}: {error.strerror}") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} is not valid YAML: {' '.join(str(error).split())}") from error
    if not isinstance(root, yaml.MappingNode) or not all(isinstance(key, str) for key in found):
        raise ValueError(f"{path} must hold a mapping of options")
    given = [key.value for key, _ in root.value]
    if twice := {key for key in given if given.count(key) > 1}:  # YAML itself would take the last
        raise ValueError(f"{path}: {', '.join(sorted(twice))} given more than once")
    if not COMMAND_LINE_ONLY.isdisjoint(found):
        raise ValueError(f"{path}: {', '.join(sorted(COMMAND_LINE_ONLY & set(found)))} belongs on the command line")
    return {key: value for key, value in found.items() if key != MEASURED}
