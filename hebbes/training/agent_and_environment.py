"""Makes what a config describes: the policy, its action head, the environment and its wrappers."""

from collections.abc import Mapping
from dataclasses import replace

from gymnasium.spaces import Box, Discrete, Space

from hebbes.environments.environment_options import ACTION_BOUNDS
from hebbes.environments.environment_spec import START_WRAPPERS, EnvironmentSpec
from hebbes.environments.gymnasium_simulator import has_fire_action
from hebbes.environments.ids import find_atari_game
from hebbes.environments.make_batch_env import choose_backend
from hebbes.environments.part_spec import PartSpec, make_part_spec
from hebbes.environments.trial import check_accepts_unbounded_actions, find_spaces
from hebbes.execution.episode import Agent
from hebbes.files.policy_file import count_outputs
from hebbes.registry.lookup import find_class
from hebbes.registry.users_classes import make_policy
from hebbes.training.config import TrainConfig
from hebbes.training.owners import find_trainer
from hebbes.training.printed_commands import format_command
from hebbes.wrappers.channels_last import has_channels_first
from hebbes.wrappers.crop import compute_cropped_shape

DEFAULT_SIZE = (84, 84)
"""Height and width, in pixels, to which larger images are shrunk, as in the reference (Najarro & Risi 2020)."""


OBSERVATION_WRAPPERS = ("atari_42", "crop", "grayscale", "resize", "frame_stack")
"""Wrappers of observations, whose order `_choose_observation_wrappers` knows."""


def _choose_observation_wrappers(space: Space, put_on: Mapping[str, PartSpec]) -> list[PartSpec]:
    """The wrappers that these observations need, and those of `put_on` that change observations, innermost first.

    A wrapper that cannot take them refuses them, when the environment is made.
    """
    if "atari_42" in put_on and not put_on.keys().isdisjoint(("crop", "grayscale", "resize")):
        raise ValueError(
            "atari_42 takes screens as they are; it cannot be combined with crop, grayscale or resize; "
            "--no_atari_42 turns it off"
        )
    shape: tuple[int, ...] = space.shape or ()
    chain = []
    if has_channels_first(space):
        chain.append(PartSpec("channels_last"))
        shape = (*shape[1:], shape[0])
    if isinstance(space, Discrete):
        chain.append(PartSpec("one_hot"))
    image = len(shape) == 3 and space.dtype == "uint8"
    if "atari_42" in put_on:
        chain += [put_on["atari_42"], PartSpec("running_normalization")]
        image = False  # the wrappers below are for pixels in bytes
    chain += [put_on[name] for name in ("crop", "grayscale") if name in put_on]
    if image and "crop" in put_on:
        shape = compute_cropped_shape(shape, put_on["crop"].kwargs["edges"])
    is_larger = image and all(wanted <= found for wanted, found in zip(DEFAULT_SIZE, shape, strict=False))
    resize = put_on.get("resize", PartSpec("resize", {"size": DEFAULT_SIZE}) if is_larger else None)
    if resize is not None and not (image and tuple(resize.kwargs["size"]) == shape[:2]):
        chain.append(resize)
    if "frame_stack" in put_on:
        chain.append(put_on["frame_stack"])
    if image:
        chain.append(PartSpec("scale"))
    return chain


def _choose_action_wrappers(config: TrainConfig, space: Space) -> list[PartSpec]:
    real, bounds = isinstance(space, Box) and space.dtype.kind == "f", config.environment.action_bounds
    if not real and bounds != "clip":
        raise ValueError(
            f"action_bounds {bounds!r} needs Box actions of real numbers; {config.environment.id} has {space}: give "
            "--action_bounds clip"
        )
    if not real:
        is_index = isinstance(space, Discrete) and space.start == 0  # as the action head `argmax` returns it
        return [] if is_index else [PartSpec("choose_action")]
    flattening = [] if len(space.shape or ()) == 1 else [PartSpec("flatten_action")]
    wrapper = ACTION_BOUNDS[bounds][1]
    return flattening if wrapper is None else [*flattening, PartSpec(wrapper)]


def make_environment_spec(config: TrainConfig) -> EnvironmentSpec:
    """The environment that the config describes, with the wrappers that options put on and its spaces need."""
    options = config.environment
    gymnasium_wrappers = tuple(map(make_part_spec, options.gymnasium_wrappers))
    bare = EnvironmentSpec(
        options.id,
        choose_backend(options.backend, options.id, options.env_kwargs, gymnasium_wrappers),
        env_kwargs=options.env_kwargs,
        imports=options.imports,
        gymnasium_wrappers=gymnasium_wrappers,
        morphologies=options.morphologies,
    )
    observation_space, action_space = find_spaces(bare)
    find_trainer(config.trainer).check_spaces(config, observation_space, action_space)
    put_on = {spec.name: spec for spec in config.list_put_on("wrapper")}
    if "fire_reset" in put_on and find_atari_game(options.id) is not None and not has_fire_action(options.id):
        raise ValueError(f"fire_reset: {options.id} has no action FIRE, or not as action 1")
    around_policy = _choose_observation_wrappers(observation_space, put_on)
    around_policy += _choose_action_wrappers(config, action_space)
    if options.action_bounds == "none" and isinstance(action_space, Box):
        check_accepts_unbounded_actions(bare, action_space)
    others = [spec for name, spec in put_on.items() if name not in (*START_WRAPPERS, *OBSERVATION_WRAPPERS)]
    others += config.list_named("wrapper")
    training_only = [spec for spec in others if getattr(find_class("wrapper", spec.name), "training_only", False)]
    first = [put_on[name] for name in START_WRAPPERS if name in put_on]
    chain = [*first, *around_policy, *(spec for spec in others if spec not in training_only)]
    return replace(bare, wrappers=tuple(chain), training_wrappers=tuple(training_only))


def make_agent(config: TrainConfig, observation_space: Space, action_space: Space) -> Agent:
    """The policy that the config names, made for these spaces, and its action head."""
    name = config.choices.policy
    policy_class = find_class("policy", name)
    trainer = getattr(policy_class, "trainer", config.trainer)
    if trainer != config.trainer:
        program = format_command(f"train_{trainer}")
        raise ValueError(f"policy {name!r} is not for this program; train it with {program}")
    if not count_outputs(action_space):
        raise ValueError(f"{config.environment.id}: its actions {action_space} have no numbers")
    sizes = {"observation_shape": observation_space.shape, "num_outputs": count_outputs(action_space)}
    policy = make_policy(name, policy_class, **sizes, **config.policy_options)
    head = "argmax" if isinstance(action_space, Discrete) else ACTION_BOUNDS[config.environment.action_bounds][0]
    return Agent(policy, head)
