"""The command that continues training from a policy file with learning rules."""

import shlex
from collections.abc import Mapping, Sequence
from contextlib import redirect_stderr
from io import StringIO
from typing import Any

from hebbes.contracts.errors import join_lines
from hebbes.contracts.option import find_unused_options, list_options
from hebbes.contracts.plain_values import make_list
from hebbes.files.policy_file import SavedPolicy
from hebbes.options.command_line import resolve_config
from hebbes.options.texts import format_arguments, format_options
from hebbes.registry.lookup import check_allowed
from hebbes.training.config import TrainConfig, find_users_modules
from hebbes.training.owners import INCIDENTAL, shorten_names
from hebbes.training.program_words import list_program_words

TRAINER = "hebbian"
NAMING = ("environment", "import", "policy", "strategy")
"""Options that decide which others exist, and which values presets give them."""


def make_train_command(path: str, saved: SavedPolicy, imports: Sequence[str] = ()) -> str:
    """The command line that continues training from a policy file, without options that the preset already sets.

    A policy file holds the options of its training (`provenance["options"]`). Where it does not, as files of earlier
    versions, or where these cannot be used, the command has the options of the policy and the environment's own, and a
    comment says that others are missing. Modules of the user's own are imported only from packages in `imports`.
    """
    words = list_program_words(f"train_{TRAINER}")
    trained = saved.provenance.get("options")
    try:
        if not isinstance(trained, dict):
            raise ValueError("it was written by an earlier version")
        trained = shorten_names(TRAINER, trained)
        check_allowed(find_users_modules(TRAINER, trained), imports)
        options, comment = _find_changes(saved, trained), ""
    except (ValueError, TypeError, LookupError) as error:
        reason = join_lines(error)
        comment = f"  # and the options of its training, which this file lacks ({reason})"
        options = _find_changes(saved, find_known_options(saved))
    return shlex.join([*words, *format_arguments({**options, "init_from": path})]) + comment


def _find_changes(saved: SavedPolicy, trained: Mapping[str, Any]) -> dict[str, Any]:
    """The options of a training that the preset does not set, with those of the saved policy."""
    kept = {name: trained[name] for name in ("environment", "import") if trained.get(name)}
    by_name = _resolve(kept).as_options()
    kept |= {name: trained[name] for name in NAMING if name in trained and trained[name] != by_name[name]}
    by_preset = _resolve(kept).as_options()
    wanted = {**trained, **find_policy_options(saved)}
    changes = {name: value for name, value in wanted.items() if name not in by_preset or by_preset[name] != value}
    used = _resolve({**kept, **changes}).list_used_options(without=INCIDENTAL)
    return {**kept, **{name: value for name, value in changes.items() if name in used}}


def _resolve(options: Mapping[str, Any]) -> TrainConfig:
    """The config with these options, without a word on what they replace: whoever runs the command is told."""
    with redirect_stderr(StringIO()):
        return resolve_config(TRAINER, format_options(options))


def find_known_options(saved: SavedPolicy) -> dict[str, Any]:
    """Options of the training that follow from the rest of a policy file."""
    spec = saved.environment
    return {
        "environment": spec.environment,
        "import": list(spec.imports),
        "policy": saved.policy_name,
        "env_kwargs": dict(spec.env_kwargs),
        "morphologies": list(spec.morphologies),
        "observation_normalization": "observation_mean" in saved.buffers,
    }


def find_policy_options(saved: SavedPolicy) -> dict[str, Any]:
    """The options that the saved policy uses, in plain types."""
    kind = type(saved.policy)
    values = {each.name: getattr(saved.policy, each.name) for each in list_options(kind)}
    used = {name: value for name, value in values.items() if name not in find_unused_options(kind, values)}
    return {name: make_list(value) for name, value in used.items()}
