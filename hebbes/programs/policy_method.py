"""The method by which the policy of a file was trained."""

from pathlib import Path
from typing import Any

from hebbes.files.checkpoint import FOLDER
from hebbes.files.option_file import CONFIG_YAML, read_yaml
from hebbes.files.policy_file import SavedPolicy
from hebbes.options.method import START, Method, find_method
from hebbes.programs.continuation import find_known_options, find_policy_options


def find_policy_method(path: str, saved: SavedPolicy) -> Method:
    """The method of a policy file: the options of its training, and those of the policy itself, which may differ.

    The header has the options of the training. Where it lacks them, those of the run in its folder are taken, and what
    follows from the rest of the file where there is no run either, as for files that torch.save wrote.
    """
    trained = saved.provenance.get("options")
    if not isinstance(trained, dict):
        trained = _read_options_of_run(Path(path).parent)
    start = {START: saved.provenance.get(START)} if START in saved.provenance else {}
    return find_method({**find_known_options(saved), **trained, **find_policy_options(saved), **start})


def _read_options_of_run(folder: Path) -> dict[str, Any]:
    """The options in the folder of a run; empty if it is none, or if they cannot be read."""
    try:
        return read_yaml(folder / CONFIG_YAML) if (folder / FOLDER).is_dir() else {}
    except ValueError:
        return {}
