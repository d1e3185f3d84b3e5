"""The command that continues training from a policy file with learning rules."""

import shlex
from typing import Any

from hebbes.contracts.option import list_options
from hebbes.files.policy_file import SavedPolicy
from hebbes.options.command_line import resolve_config
from hebbes.options.texts import format_arguments, format_options
from hebbes.training.program_words import list_program_words

TRAINER = "hebbian"


def make_train_command(path: str, saved: SavedPolicy) -> str:
    """The command line that continues training from a policy file, without options that the preset already sets.

    A policy file holds the options on which its training depends (`provenance["options"]`). Files of earlier versions
    do not. For these the command is followed by a word about the options that it lacks.
    """
    words = list_program_words(f"train_{TRAINER}")
    trained, policy = saved.provenance.get("options"), _find_policy_options(saved)
    if not isinstance(trained, dict):
        named = {"environment": saved.environment.environment, "policy": saved.policy_name, **policy}
        command = shlex.join([*words, *format_arguments({**named, "init_from": path})])
        return f"{command}, and the options of its environment: this file was trained before files kept them"
    named = {name: trained[name] for name in ("environment", "import") if trained.get(name)}
    by_preset = resolve_config(TRAINER, format_options(named)).as_options()
    wanted = {**trained, **policy}
    changes = {name: value for name, value in wanted.items() if name not in by_preset or by_preset[name] != value}
    config = resolve_config(TRAINER, format_options({**named, **changes}))
    used = config.list_used_options()
    options = {name: value for name, value in changes.items() if name in used}
    return shlex.join([*words, *format_arguments({**named, **options, "init_from": path})])


def _find_policy_options(saved: SavedPolicy) -> dict[str, Any]:
    """The options of the saved policy, in plain types."""
    values = {each.name: getattr(saved.policy, each.name) for each in list_options(type(saved.policy))}
    return {name: list(value) if isinstance(value, tuple) else value for name, value in values.items()}
