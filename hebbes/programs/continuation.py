"""How to go on from a policy file with learning rules: the options of training with which `--init_from` takes it."""

import shlex
from collections.abc import Collection, Mapping
from dataclasses import fields, replace
from typing import Any

from hebbes.environments.spec import EnvironmentSpec, choose_backend
from hebbes.files.policy_file import SavedPolicy
from hebbes.options.command_line import parse_config
from hebbes.options.flags import as_arguments
from hebbes.training.assembly import environment_spec
from hebbes.training.unused_options import unused_options

_BOUNDS_OF_HEADS = {"argmax": "clip", "tanh": "tanh", "tanh_sigmoid": "tanh_sigmoid"}


def train_command(path: str, saved: SavedPolicy) -> str:
    """The command line that goes on with the policy of `path`; what the preset of its environment says is left out.

    Makes and starts one copy of the environment; ValueError where these options would make another one than the file's.
    """
    spec = saved.environment
    named = {"environment": spec.environment}
    imports = {"import": list(spec.imports)} if spec.imports else {}
    preset = parse_config("hebbian", as_arguments(named | imports), "")
    by_default = preset.as_options()
    changes = {name: value for name, value in _options(saved, by_default).items() if value != by_default[name]}
    unused = unused_options(replace(preset, **changes))
    options = {name: value for name, value in changes.items() if name not in unused}
    arguments = as_arguments({**named, **options, "init_from": path, **imports})
    _check_same(path, environment_spec(parse_config("hebbian", arguments, "")), spec)
    return shlex.join(["python", "train_hebbian.py", *(argument.strip() for argument in arguments)])


def _check_same(path: str, rebuilt: EnvironmentSpec, spec: EnvironmentSpec) -> None:
    """Refuses an environment that training cannot make."""
    for each in fields(spec):
        ours, theirs = getattr(rebuilt, each.name), getattr(_of_today(spec), each.name)
        if ours != theirs:
            raise ValueError(
                f"{path}: no options of training make its environment: {each.name} would be {ours}, not {theirs}"
            )


def _of_today(spec: EnvironmentSpec) -> EnvironmentSpec:
    """The environment with all arguments of early stopping, of which files from before it had a choice lack one."""
    training_wrappers = tuple(
        replace(wrapper, kwargs={**wrapper.kwargs, "counts_grace": _counts_grace(wrapper.kwargs)})
        if wrapper.name == "early_stop" and wrapper.kwargs.get("grace_steps")
        else wrapper
        for wrapper in spec.training_wrappers
    )
    return replace(spec, training_wrappers=training_wrappers)


def _counts_grace(early_stop: Mapping[str, Any]) -> bool:
    return bool(early_stop.get("grace_steps")) and bool(early_stop.get("counts_grace", True))


def _action_bounds(head: str, wrappers: Collection[str]) -> str:
    """The way to treat the bounds of Box actions that has this action head and these wrappers."""
    if head == "identity":
        return "clip" if {"clip_action", "choose_action"} & set(wrappers) else "none"
    return "rescale" if head == "tanh" and "rescale_action" in wrappers else _BOUNDS_OF_HEADS[head]


def _options(saved: SavedPolicy, known: dict[str, Any]) -> dict[str, Any]:
    """The options that make this policy in this environment; those of the policy only as far as they are known."""
    spec, policy = saved.environment, saved.policy
    wrappers = {wrapper.name: wrapper.kwargs for wrapper in (*spec.wrappers, *spec.training_wrappers)}
    size = policy.observation_shape[:2] if "scale" in wrappers else None
    if "resize" in wrappers:
        size = (wrappers["resize"]["height"], wrappers["resize"]["width"])
    early_stop = wrappers.get("early_stop", {})
    auto = choose_backend("auto", spec.environment, spec.env_kwargs, spec.gymnasium_wrappers)
    own = {each.name: getattr(policy, each.name) for each in fields(policy) if each.name in known}  # type: ignore[arg-type]  # policies are dataclasses
    found = {
        "backend": "auto" if auto == spec.backend else spec.backend,
        "env_kwargs": dict(spec.env_kwargs),
        "bodies": spec.bodies,
        "settle_steps": wrappers.get("settle", {}).get("num_steps", 0),
        "fire_reset": "fire_reset" in wrappers,
        "grayscale": "grayscale" in wrappers,
        "atari_42": "atari_42" in wrappers,
        "resize": size,
        "frame_stack": wrappers.get("frame_stack", {}).get("num_frames", 1),
        "action_bounds": _action_bounds(saved.action_head, wrappers),
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
