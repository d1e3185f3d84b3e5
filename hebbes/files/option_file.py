"""Files of options: presets, `--config`, and the config.yaml of a run."""

from pathlib import Path
from typing import Any

import yaml

CONFIG_YAML = "config.yaml"
"""The file of a run's options in its folder."""

MEASURED = "measured"
"""The key of a preset's measured score. It is not an option."""

COMMAND_LINE_ONLY = {"config", "resume", "print_config", "help"}


def read_yaml(path: Path) -> dict[str, Any]:
    """The options in a YAML file, without the preset's measured score. Raises ValueError that names the file."""
    try:
        text = path.read_text()
        if any(isinstance(event, yaml.AliasEvent) for event in yaml.parse(text, Loader=yaml.SafeLoader)):
            raise ValueError(f"{path}: YAML aliases (*name) are refused, because a few can expand to gigabytes")
        root, found = yaml.compose(text, Loader=yaml.SafeLoader), yaml.safe_load(text)
    except OSError as error:
        raise ValueError(f"cannot read {path}: {error.strerror}") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} is not valid YAML: {' '.join(str(error).split())}") from error
    if not isinstance(root, yaml.MappingNode) or not all(isinstance(key, str) for key in found):
        raise ValueError(f"{path} must hold a mapping of options")
    given = [key.value for key, _ in root.value]
    if repeated := {key for key in given if given.count(key) > 1}:  # YAML itself would use the last one
        raise ValueError(f"{path}: {', '.join(sorted(repeated))} given more than once")
    if not COMMAND_LINE_ONLY.isdisjoint(found):
        raise ValueError(f"{path}: {', '.join(sorted(COMMAND_LINE_ONLY & set(found)))} belongs on the command line")
    return {key: value for key, value in found.items() if key != MEASURED}
