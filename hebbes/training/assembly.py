"""Makes what a config describes: the policy, its action head, the environment and its wrappers."""

from dataclasses import fields
from typing import Any

from gymnasium.spaces import Box, Discrete, Space

from hebbes.environments.environment_spec import EnvironmentSpec
from hebbes.environments.make_batch_env import choose_backend, make_batch_env
from hebbes.environments.morphologies import shorten_morphology_name
from hebbes.environments.wrapper_spec import WrapperSpec, make_wrapper_spec
from hebbes.execution.episode import Agent
from hebbes.files.policy_file import count_outputs
from hebbes.policies.cnn import can_convolve
from hebbes.registry.lookup import find_class
from hebbes.registry.users_classes import make_policy
from hebbes.training.config import HEADS_OF_BOUNDS, TrainConfig
from hebbes.training.trainers import find_trainer
from hebbes.training.unbounded_actions import check_accepts_unbounded_actions
from hebbes.wrappers.atari_42 import SCREEN
from hebbes.wrappers.channels_last import has_channels_first

DEFAULT_SIZE = (84, 84)
"""Height and width, in pixels, to which larger images are shrunk, as in the reference (Najarro & Risi 2020)."""


def find_spaces(spec: EnvironmentSpec) -> tuple[Space, Space]:
    """Observation and action space of the environment with its wrappers; makes and starts one to learn them.

    ValueError if that fails in any morphology. So no run begins that could not play its first episode.
    """
    first, *others = [_find_spaces_of_morphology(spec, morphology) for morphology in spec.morphologies]
    for morphology, other in zip(spec.morphologies[1:], others, strict=True):
        if other != first:
            names = shorten_morphology_name(morphology), shorten_morphology_name(spec.morphologies[0])
            raise ValueError(f"morphologies: {names[0]!r} has the spaces {other}, but {names[1]!r} has {first}")
    return first


def _find_spaces_of_morphology(spec: EnvironmentSpec, morphology: str) -> tuple[Space, Space]:
    try:
        env = make_batch_env(spec, [0], threads=1, training=True, morphology=morphology)
    except ValueError:
        raise
    except Exception as error:  # a user's own environment or wrapper may raise anything
        raise _make_start_error(spec, error) from error
    try:
        env.start(0)
    except Exception as error:
        raise _make_start_error(spec, error) from error
    finally:
        env.close()
    return env.observation_space, env.action_space  # type: ignore[return-value]  # they are Gymnasium's


def _make_start_error(spec: EnvironmentSpec, error: Exception) -> ValueError:
    """A ValueError whose one line names the environment."""
    reason = str(error) if isinstance(error, ValueError) else f"{type(error).__name__}: {error}"
    named = f"environment {spec.environment!r}"
    return ValueError(reason if reason.startswith(named) else f"{named} cannot be started: {reason}")


def _choose_observation_wrappers(config: TrainConfig, space: Space) -> list[WrapperSpec]:
    shape: tuple[int, ...] = space.shape or ()
    chain = []
    if has_channels_first(space):
        chain.append(WrapperSpec("channels_last", {}))
        shape = (*shape[1:], shape[0])
    if isinstance(space, Discrete):
        chain.append(WrapperSpec("one_hot", {}))
        shape = (int(space.n),)
    image = len(shape) == 3 and space.dtype == "uint8"
    _check_observation_options(config, space, shape if image else None)
    if config.frame_stack > 1 and len(shape) not in (1, 3):
        raise ValueError(f"frame_stack stacks images and vectors; {config.environment} has observations {space}")
    if config.atari_42:
        chain += [WrapperSpec("atari_42", {}), WrapperSpec("running_normalization", {})]
        image = False  # the wrappers below are for pixels in bytes
    if config.grayscale:
        chain.append(WrapperSpec("grayscale", {}))
    if image and (size := _choose_image_size(config, shape)) != shape[:2]:
        chain.append(WrapperSpec("resize", {"size": list(size)}))
    if config.frame_stack > 1:
        chain.append(WrapperSpec("frame_stack", {"num_frames": config.frame_stack}))
    if image:
        chain.append(WrapperSpec("scale", {}))
    return chain


def _check_observation_options(config: TrainConfig, space: Space, image: tuple[int, ...] | None) -> None:
    """ValueError for options that these observations do not allow.

    `image` is their shape (height, width, channels), or None if they are not images.
    """
    if config.grayscale and (image is None or image[2] != 3):
        raise ValueError(f"grayscale needs color images; {config.environment} has observations {space}")
    if config.resize is not None and image is None:
        raise ValueError(f"resize needs images; {config.environment} has observations {space}")
    if config.atari_42 and (image != SCREEN or config.grayscale or config.resize is not None):
        other = "it cannot be combined with grayscale or resize" if image == SCREEN else f"got observations {space}"
        raise ValueError(f"atari_42 takes Atari's screens of {SCREEN} as they are; {other}")


def _choose_image_size(config: TrainConfig, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Height and width that the policy sees."""
    smaller = all(wanted <= given for wanted, given in zip(config.resize or DEFAULT_SIZE, shape[:2], strict=True))
    if config.resize is not None and not smaller:
        raise ValueError(f"resize only shrinks: got {list(config.resize)} for images of {list(shape[:2])}")
    return config.resize or (DEFAULT_SIZE if smaller else shape[:2])


def _choose_action_wrappers(config: TrainConfig, space: Space) -> list[WrapperSpec]:
    real = isinstance(space, Box) and space.dtype.kind == "f"
    if not real and config.action_bounds != "clip":
        raise ValueError(
            f"action_bounds {config.action_bounds!r} needs Box actions of real numbers; {config.environment} has "
            f"{space}: give --action_bounds clip"
        )
    if not real:
        return [] if _starts_at_0(space) else [WrapperSpec("choose_action", {})]
    flattening = [] if len(space.shape or ()) == 1 else [WrapperSpec("flatten_action", {})]
    if config.action_bounds == "none":
        return flattening
    return [*flattening, WrapperSpec("rescale_action" if config.action_bounds == "rescale" else "clip_action", {})]


def _starts_at_0(space: Space) -> bool:
    """Whether the actions are the numbers 0, 1, ..., as the action head `argmax` returns them."""
    return isinstance(space, Discrete) and space.start == 0


def make_environment_spec(config: TrainConfig) -> EnvironmentSpec:
    """The environment that the config describes, with the wrappers that its spaces need."""
    gymnasium_wrappers = tuple(map(make_wrapper_spec, config.gymnasium_wrappers))
    backend = choose_backend(config.backend, config.environment, config.env_kwargs, gymnasium_wrappers)
    bare: dict[str, Any] = {
        "environment": config.environment,
        "backend": backend,
        "env_kwargs": config.env_kwargs,
        "imports": config.imports,
        "gymnasium_wrappers": gymnasium_wrappers,
        "morphologies": config.morphologies,
    }
    observation_space, action_space = find_spaces(EnvironmentSpec(**bare))
    around_policy = _choose_observation_wrappers(config, observation_space)
    around_policy += _choose_action_wrappers(config, action_space)
    if config.action_bounds == "none" and isinstance(action_space, Box):
        check_accepts_unbounded_actions(EnvironmentSpec(**bare), action_space)
    chain = []
    if config.settle_steps:
        chain.append(WrapperSpec("settle", {"num_steps": config.settle_steps}))
    if config.fire_reset:
        chain.append(WrapperSpec("fire_reset", {}))
    chain += [*around_policy, *map(make_wrapper_spec, config.wrappers)]
    training_only = []
    if config.early_stop_negative_streak is not None:
        grace = config.early_stop_grace_steps
        settings = {
            "negative_streak": config.early_stop_negative_streak,
            "grace_steps": grace,
            **({"counts_grace": config.early_stop_counts_grace} if grace else {}),
        }
        training_only.append(WrapperSpec("early_stop", settings))
    return EnvironmentSpec(**bare, wrappers=tuple(chain), training_wrappers=tuple(training_only))


def make_agent(config: TrainConfig, observation_space: Space, action_space: Space) -> Agent:
    """The policy that the config names, made for these spaces, and its action head."""
    policy_class = find_class("policy", config.policy)
    settings = _find_policy_options(config, policy_class)
    policy = make_policy(
        config.policy,
        policy_class,
        observation_shape=observation_space.shape,
        num_outputs=count_outputs(action_space),
        **{name: getattr(config, name) for name in settings},
    )
    return Agent(policy, "argmax" if isinstance(action_space, Discrete) else HEADS_OF_BOUNDS[config.action_bounds])


def choose_policy(observation_space: Space) -> str:
    """The name of the policy that `--policy auto` stands for: `cnn` for images that are large enough, else `mlp`."""
    return "cnn" if can_convolve(observation_space.shape or ()) else "mlp"


def _find_policy_options(config: TrainConfig, policy_class: type[Any]) -> set[str]:
    """Names of the options that are fields of the policy; ValueError if this program cannot train this policy."""
    own = {each.name: "help" in each.metadata for each in fields(policy_class)}
    asked = {each.name for each in fields(config)}
    lacking = sorted(name for name, is_option in own.items() if is_option and name not in asked)
    surplus = sorted(asked - {each.name for each in fields(TrainConfig)} - own.keys())
    if lacking or surplus:
        verb, names = ("needs", lacking) if lacking else ("does not take", surplus)
        program = find_trainer({each.name for each in fields(TrainConfig)} | set(lacking))
        raise ValueError(
            f"policy {config.policy!r} {verb} {names[0]}, an option of its training; train it with train_{program}.py"
        )
    return own.keys() & asked
