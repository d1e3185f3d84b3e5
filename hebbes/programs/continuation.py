"""The command that continues training from a policy file with learning rules."""

import shlex
from collections.abc import Collection, Mapping
from dataclasses import fields, replace
from typing import Any

from hebbes.environments.environment_spec import EnvironmentSpec
from hebbes.environments.make_batch_env import choose_backend
from hebbes.files.policy_file import SavedPolicy
from hebbes.options.command_line import parse_config
from hebbes.options.flags import format_arguments
from hebbes.training.assembly import make_environment_spec
from hebbes.training.program_words import list_program_words
from hebbes.training.unused_options import find_unused_options

_BOUNDS_OF_HEADS = {"argmax": "clip", "tanh": "tanh", "tanh_sigmoid": "tanh_sigmoid"}


def make_train_command(path: str, saved: SavedPolicy) -> str:
    """The command line that continues training from a policy file, without options that the preset already sets.

    Makes and starts one sub-environment. Raises ValueError if no options make the environment of the file.
    """
    spec = saved.environment
    named = {"environment": spec.environment}
    imports = {"import": list(spec.imports)} if spec.imports else {}
    preset = parse_config("hebbian", format_arguments(named | imports), "")
    by_default = preset.as_options()
    changes = {name: value for name, value in _find_options(saved, by_default).items() if value != by_default[name]}
    unused = find_unused_options(replace(preset, **changes))
    options = {name: value for name, value in changes.items() if name not in unused}
    arguments = format_arguments({**named, **options, "init_from": path, **imports})
    _check_same_environment(path, make_environment_spec(parse_config("hebbian", arguments, "")), spec)
    return shlex.join([*list_program_words("train_hebbian"), *(argument.strip() for argument in arguments)])


def _check_same_environment(path: str, rebuilt: EnvironmentSpec, spec: EnvironmentSpec) -> None:
    """Raises ValueError if the rebuilt environment is not that of the file."""
    for each in fields(spec):
        ours, theirs = getattr(rebuilt, each.name), getattr(_add_counts_grace(spec), each.name)
        if ours != theirs:
            raise ValueError(
                f"{path}: no options of training make its environment: {each.name} would be {ours}, not {theirs}"
            )


def _add_counts_grace(spec: EnvironmentSpec) -> EnvironmentSpec:
    """The environment with `counts_grace` of early stopping, which files of earlier versions lack."""
    training_wrappers = tuple(
        replace(wrapper, kwargs={**wrapper.kwargs, "counts_grace": _counts_grace(wrapper.kwargs)})
        if wrapper.name == "early_stop" and wrapper.kwargs.get("grace_steps")
        else wrapper
        for wrapper in spec.training_wrappers
    )
    return replace(spec, training_wrappers=training_wrappers)


def _counts_grace(early_stop: Mapping[str, Any]) -> bool:
    return bool(early_stop.get("grace_steps")) and bool(early_stop.get("counts_grace", True))


def _find_action_bounds(head: str, wrappers: Collection[str]) -> str:
    """The value of `--action_bounds` that gives this action head and these wrappers."""
    if head == "identity":
        return "clip" if {"clip_action", "choose_action"} & set(wrappers) else "none"
    return "rescale" if head == "tanh" and "rescale_action" in wrappers else _BOUNDS_OF_HEADS[head]


def _find_options(saved: SavedPolicy, known: dict[str, Any]) -> dict[str, Any]:
    """The options of training that make this policy in this environment; fields of the policy only if `known`."""
    spec, policy = saved.environment, saved.policy
    wrappers = {wrapper.name: wrapper.kwargs for wrapper in (*spec.wrappers, *spec.training_wrappers)}
    size = policy.observation_shape[:2] if "scale" in wrappers else None
    if "resize" in wrappers:
        size = tuple(wrappers["resize"]["size"])
    early_stop = wrappers.get("early_stop", {})
    auto = choose_backend("auto", spec.environment, spec.env_kwargs, spec.gymnasium_wrappers)
    own = {each.name: getattr(policy, each.name) for each in fields(policy) if each.name in known}  # type: ignore[arg-type]  # policies are dataclasses
    found = {
        "backend": "auto" if auto == spec.backend else spec.backend,
        "env_kwargs": dict(spec.env_kwargs),
        "morphologies": spec.morphologies,
        "settle_steps": wrappers.get("settle", {}).get("num_steps", 0),
        "fire_reset": "fire_reset" in wrappers,
        "grayscale": "grayscale" in wrappers,
        "atari_42": "atari_42" in wrappers,
        "resize": size,
        "frame_stack": wrappers.get("frame_stack", {}).get("num_frames", 1),
        "action_bounds": _find_action_bounds(saved.action_head, wrappers),
        "early_stop_negative_streak": early_stop.get("negative_streak"),
        "early_stop_grace_steps": early_stop.get("grace_steps", 0),
        "early_stop_counts_grace": _counts_grace(early_stop),
        "gymnasium_wrappers": [wrapper.entry for wrapper in spec.gymnasium_wrappers],
        "wrappers": [wrapper.entry for wrapper in spec.wrappers if ":" in wrapper.name],
        "observation_normalization": "observation_mean" in saved.buffers,
        "policy": saved.policy_name,
        **own,
    }
    return {name: list(value) if isinstance(value, tuple) else value for name, value in found.items()}
