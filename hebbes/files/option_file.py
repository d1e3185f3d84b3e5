"""Files of options: presets, `--config`, and the config.yaml of a run."""

from pathlib import Path
from typing import Any

import yaml

CONFIG_YAML = "config.yaml"
"""The file of a run's options in its folder."""

MEASURED = "measured"
"""The key of a preset's measured score. It is not an option."""

COMMAND_LINE_ONLY = {"config", "run.config", "resume", "run.resume", "print_config", "help"}


class _Loader(yaml.SafeLoader):
    """PyYAML's safe loader, without aliases: a few can expand to gigabytes. All that it raises says in which line."""

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        if self.check_event(yaml.AliasEvent):
            raise yaml.MarkedYAMLError(None, None, "aliases (*name) are refused here", self.peek_event().start_mark)
        return super().compose_node(parent, index)

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        try:
            return super().construct_object(node, deep)
        except (ValueError, KeyError, AttributeError) as error:  # PyYAML does not check dates and tagged values
            raise yaml.MarkedYAMLError(None, None, "not a value of its type", node.start_mark) from error


def parse_yaml(text: str) -> Any:
    """The value of a text in YAML. Raises yaml.YAMLError, or RecursionError if it is nested too deeply."""
    return _Loader(text).get_single_data()


def read_yaml(path: Path) -> dict[str, Any]:
    """The options in a YAML file, without the preset's measured score. Raises ValueError that names the file."""
    try:
        loader = _Loader(path.read_text())
        root = loader.get_single_node()
        if not isinstance(root, yaml.MappingNode):
            raise ValueError(f"{path} must hold a mapping of options")
        given = [key.value for key, _ in root.value]
        found: dict[str, Any] = loader.construct_document(root)
    except OSError as error:
        raise ValueError(f"cannot read {path}: {error.strerror}") from error
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as error:
        raise ValueError(f"{path} is not valid YAML: {' '.join(str(error).split())}") from error
    if not all(isinstance(key, str) for key in found):
        raise ValueError(f"{path} must hold a mapping of options")
    if repeated := {key for key in given if given.count(key) > 1}:  # YAML itself would use the last one
        raise ValueError(f"{path}: {', '.join(sorted(repeated))} given more than once")
    if not COMMAND_LINE_ONLY.isdisjoint(found):
        raise ValueError(f"{path}: {', '.join(sorted(COMMAND_LINE_ONLY & set(found)))} belongs on the command line")
    return {key: value for key, value in found.items() if key != MEASURED}
