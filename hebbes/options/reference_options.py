"""Options that describe the network and the environment of a file of the reference.

The code of Najarro & Risi (NeurIPS 2020, arXiv 2007.02686) saves bare numbers. The network and its environment follow
from that code's conventions, which depend only on the id. The shared presets hold those of CarRacing and of PyBullet's
walkers. In Atari games that wait for FIRE it is pressed. In all other environments actions are clipped. Options that
were tuned here say nothing about such a file, so no other preset is read.
"""

from collections.abc import Iterable
from dataclasses import Field, dataclass, fields, replace
from typing import Any

from hebbes.contracts.option import get_flag_name, option
from hebbes.environments.environment_spec import EnvironmentSpec
from hebbes.environments.gymnasium_env import has_fire_button
from hebbes.environments.ids import is_built_into_gymnasium
from hebbes.execution.episode import Agent
from hebbes.options.command_line import parse_config
from hebbes.options.flags import format_arguments
from hebbes.options.presets import read_shared_options
from hebbes.training.assembly import find_spaces, make_agent, make_environment_spec
from hebbes.training.config import NO_PRESET, TrainConfig
from hebbes.training.trainers import HebbianConfig


def copy_training_option(name: str, choices: tuple[str, ...] = ()) -> Any:
    """An option of training with None as its default, which means that the reference's conventions decide."""
    (field,) = (each for each in fields(HebbianConfig) if each.name == name)
    metadata = field.metadata
    return option(
        None,
        f"{metadata['help']} (files of torch.save; default: the reference's)",
        choices=choices or metadata["choices"],
        read=metadata["read"],
    )


@dataclass(frozen=True, kw_only=True)
class ReferenceOptions:
    """Options for what a file of the reference does not say about its network's size and its environment."""

    hidden_sizes: tuple[int, ...] | None = copy_training_option("hidden_sizes")
    action_bounds: str | None = copy_training_option("action_bounds")
    resize: tuple[int, ...] | None = copy_training_option("resize")
    grayscale: bool | None = copy_training_option("grayscale")
    frame_stack: int | None = copy_training_option("frame_stack")
    settle_steps: int | None = copy_training_option("settle_steps")
    fire_reset: bool | None = copy_training_option("fire_reset")
    early_stop_negative_streak: int | None = copy_training_option("early_stop_negative_streak")
    early_stop_grace_steps: int | None = copy_training_option("early_stop_grace_steps")
    gymnasium_wrappers: tuple[Any, ...] | None = copy_training_option("gymnasium_wrappers")
    wrappers: tuple[Any, ...] | None = copy_training_option("wrappers")

    def collect_given(self, among: Iterable[Field]) -> dict[str, Any]:
        """The values of the fields that were given, by flag, as YAML holds them."""
        found = {get_flag_name(each): getattr(self, each.name) for each in among}
        plain = {name: list(value) if isinstance(value, tuple) else value for name, value in found.items()}
        return {name: value for name, value in plain.items() if value is not None}


def make_reference_training(
    trainer: str, environment: str, given: dict[str, Any]
) -> tuple[TrainConfig, EnvironmentSpec, Agent]:
    """The config, environment and agent of the training that would have made a file.

    Raises ValueError if neither the options nor the reference say how the network's outputs become actions.
    """
    options = {"environment": environment, "preset": NO_PRESET, **given}
    config = parse_config(trainer, format_arguments(options), "")
    if has_fire_button(config.environment) and "fire_reset" not in given:
        config = replace(config, fire_reset=True)
    spec = make_environment_spec(config)
    shared = read_shared_options(config.environment, ["action_bounds"])
    says_bounds = "action_bounds" in given or is_built_into_gymnasium(config.environment) or shared
    if not says_bounds and any(each.name == "clip_action" for each in spec.wrappers):
        raise ValueError(
            f"the reference has no conventions for {config.environment}: say with --action_bounds how its actions were "
            "bounded (clip, tanh, ...), and what else its training did, with --settle_steps, --gymnasium_wrappers, "
            "--wrappers, --early_stop_negative_streak, --early_stop_grace_steps"
        )
    return config, spec, make_agent(config, *find_spaces(spec))
