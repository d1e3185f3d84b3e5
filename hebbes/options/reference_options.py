"""Options that say what a file of the reference is for.

The code of Najarro & Risi (NeurIPS 2020, arXiv 2007.02686) saves bare numbers. The network and its environment follow
from that code's conventions, which depend on the id alone: the shared presets have those of CarRacing and of PyBullet's
walkers, Atari games are fired at where they wait for it, and actions of all other environments are clipped. What was
tuned here for an environment says nothing about such a file, so no other preset is read.
"""

from collections.abc import Iterable
from dataclasses import Field, dataclass, fields, replace
from typing import Any

from hebbes.contracts.option import flag_name, option
from hebbes.environments.gymnasium_env import waits_for_fire
from hebbes.environments.ids import is_of_gymnasium
from hebbes.environments.spec import EnvironmentSpec
from hebbes.execution.episode import Agent
from hebbes.options.command_line import parse_config
from hebbes.options.flags import as_arguments
from hebbes.options.presets import shared_options
from hebbes.training.assembly import environment_spec, make_agent, spaces
from hebbes.training.config import NO_PRESET, TrainConfig
from hebbes.training.trainers import HebbianConfig


def as_trained(name: str, choices: tuple[str, ...] = ()) -> Any:
    """An option of training; not given, it is what the reference's conventions say."""
    (found,) = (each for each in fields(HebbianConfig) if each.name == name)
    told = found.metadata
    return option(
        None,
        f"{told['help']} (files of torch.save; default: the reference's)",
        choices=choices or told["choices"],
        read=told["read"],
    )


@dataclass(frozen=True, kw_only=True)
class ReferenceOptions:
    """What a file of the reference does not say about its network's size and its environment."""

    hidden_sizes: tuple[int, ...] | None = as_trained("hidden_sizes")
    action_bounds: str | None = as_trained("action_bounds")
    resize: tuple[int, ...] | None = as_trained("resize")
    grayscale: bool | None = as_trained("grayscale")
    frame_stack: int | None = as_trained("frame_stack")
    settle_steps: int | None = as_trained("settle_steps")
    fire_reset: bool | None = as_trained("fire_reset")
    early_stop_negative_streak: int | None = as_trained("early_stop_negative_streak")
    early_stop_grace_steps: int | None = as_trained("early_stop_grace_steps")
    gymnasium_wrappers: tuple[Any, ...] | None = as_trained("gymnasium_wrappers")
    wrappers: tuple[Any, ...] | None = as_trained("wrappers")

    def given(self, among: Iterable[Field]) -> dict[str, Any]:
        """Those of these fields that were given, by flag, as YAML holds them."""
        found = {flag_name(each): getattr(self, each.name) for each in among}
        plain = {name: list(value) if isinstance(value, tuple) else value for name, value in found.items()}
        return {name: value for name, value in plain.items() if value is not None}


def reference_training(
    trainer: str, environment: str, given: dict[str, Any]
) -> tuple[TrainConfig, EnvironmentSpec, Agent]:
    """The training that would have made a file, by its options: what it says, its environment and its agent.

    ValueError where neither the options nor the reference say what becomes of the network's outputs.
    """
    options = {"environment": environment, "preset": NO_PRESET, **given}
    config = parse_config(trainer, as_arguments(options), "")
    if waits_for_fire(config.environment) and "fire_reset" not in given:
        config = replace(config, fire_reset=True)
    spec = environment_spec(config)
    conventional = is_of_gymnasium(config.environment) or shared_options(config.environment, ["action_bounds"])
    if "action_bounds" not in given and not conventional and any(each.name == "clip_action" for each in spec.wrappers):
        raise ValueError(
            f"the reference has no conventions for {config.environment}: say with --action_bounds how its actions were "
            "bounded (clip, tanh, ...), and what else its training did: --settle_steps, --gymnasium_wrappers, "
            "--wrappers, --early_stop_negative_streak, --early_stop_grace_steps"
        )
    return config, spec, make_agent(config, *spaces(spec))
