"""From a config to what acts: the environment with its wrappers, the policy and its action head."""

from dataclasses import fields, replace
from math import prod
from typing import Any

from gymnasium.spaces import Box, Discrete, Space

from contracts.policy import Policy
from rollouts.environments import EnvironmentSpec, WrapperSpec, choose_backend, make_batch_env
from rollouts.episode import Agent
from rollouts.registry import lookup
from training.config import TrainConfig

HEADS_OF_BOUNDS = {"clip": "identity", "tanh": "tanh", "rescale": "tanh", "tanh_sigmoid": "tanh_sigmoid"}


def spaces(spec: EnvironmentSpec) -> tuple[Space, Space]:
    """Observation and action space of the environment, wrapped as for training."""
    env = make_batch_env(spec, [0], threads=1, training=True)
    env.close()
    return env.observation_space, env.action_space


def is_image(space: Space) -> bool:
    """Whether the observations are (height, width, channels) pictures."""
    return isinstance(space, Box) and len(space.shape) == 3 and space.dtype == "uint8"


def _observation_wrappers(config: TrainConfig, space: Space) -> list[WrapperSpec]:
    if isinstance(space, Discrete):
        return [WrapperSpec("one_hot", {})]
    chain = []
    if is_image(space):
        if config.grayscale and space.shape[2] == 3:
            chain.append(WrapperSpec("grayscale", {}))
        height, width = config.resize
        if height and (height, width) != space.shape[:2]:
            chain.append(WrapperSpec("resize", {"height": height, "width": width}))
    if config.frame_stack > 1:
        chain.append(WrapperSpec("frame_stack", {"num_frames": config.frame_stack}))
    if is_image(space):
        chain.append(WrapperSpec("scale", {}))
    return chain


def _action_wrappers(config: TrainConfig, space: Space) -> list[WrapperSpec]:
    if isinstance(space, Discrete):
        return []
    return [WrapperSpec("rescale_action" if config.action_bounds == "rescale" else "clip_action", {})]


def environment_spec(config: TrainConfig) -> EnvironmentSpec:
    """The environment that the config describes; makes one copy to learn its spaces."""
    gymnasium_wrappers = tuple(WrapperSpec(name, {}) for name in config.gymnasium_wrappers)
    backend = choose_backend(config.backend, config.environment, config.env_kwargs, gymnasium_wrappers)
    bare: dict[str, Any] = {
        "environment": config.environment,
        "backend": backend,
        "env_kwargs": config.env_kwargs,
        "imports": config.imports,
        "gymnasium_wrappers": gymnasium_wrappers,
    }
    observation_space, action_space = spaces(EnvironmentSpec(**bare))
    chain = []
    if config.settle_steps:
        chain.append(WrapperSpec("settle", {"num_steps": config.settle_steps}))
    if config.fire_reset:
        chain.append(WrapperSpec("fire_reset", {}))
    chain += _observation_wrappers(config, observation_space) + _action_wrappers(config, action_space)
    chain += [WrapperSpec(name, {}) for name in config.wrappers]
    training_only = []
    if config.early_stop_negative_streak is not None:
        settings = {
            "negative_streak": config.early_stop_negative_streak,
            "grace_steps": config.early_stop_grace_steps,
        }
        training_only.append(WrapperSpec("early_stop", settings))
    return EnvironmentSpec(**bare, wrappers=tuple(chain), training_wrappers=tuple(training_only))


def num_outputs(action_space: Space) -> int:
    """Outputs that a policy needs for this action space."""
    return int(action_space.n) if isinstance(action_space, Discrete) else prod(action_space.shape)


def with_policy_chosen(config: TrainConfig, spec: EnvironmentSpec) -> TrainConfig:
    """The config with `auto` replaced by the name of a policy."""
    if config.policy != "auto":
        return config
    return replace(config, policy="cnn" if len(spaces(spec)[0].shape) == 3 else "mlp")


def make_agent(config: TrainConfig, spec: EnvironmentSpec) -> Agent:
    """The policy that the config names, of the environment's sizes, and its action head."""
    observation_space, action_space = spaces(spec)
    shape = observation_space.shape
    policy_class = lookup("policies", config.policy)
    settings = {option.name for option in fields(policy_class)} & {option.name for option in fields(TrainConfig)}
    policy: Policy = policy_class(
        observation_shape=tuple(shape),
        num_outputs=num_outputs(action_space),
        **{option: getattr(config, option) for option in settings},
    )
    head = "argmax" if isinstance(action_space, Discrete) else HEADS_OF_BOUNDS[config.action_bounds]
    return Agent(policy, head)
