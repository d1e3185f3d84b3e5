"""The training that would have made a file of the reference, whose code saves bare numbers.

What is known of such a training: `hebbes.options.reference_options`.
"""

from typing import Any

from hebbes.environments.environment_spec import EnvironmentSpec
from hebbes.environments.gymnasium_simulator import has_fire_action
from hebbes.environments.ids import is_built_into_gymnasium, resolve
from hebbes.environments.trial import find_spaces
from hebbes.execution.episode import Agent
from hebbes.options.command_line import resolve_config
from hebbes.options.presets import read_shared_options
from hebbes.options.texts import format_options
from hebbes.training.agent_and_environment import make_agent, make_environment_spec
from hebbes.training.config import TrainConfig
from hebbes.training.run_options import NO_PRESET


def make_reference_training(
    trainer: str, environment: str, given: dict[str, Any]
) -> tuple[TrainConfig, EnvironmentSpec, Agent]:
    """The config, environment and agent of the training that would have made a file.

    Raises ValueError if neither the options nor the reference say how the network's outputs become actions.
    """
    options = {"environment": environment, "preset": NO_PRESET, **given}
    resolved = resolve(environment, given.get("import", ()))
    if has_fire_action(resolved.environment):
        options.setdefault("fire_reset", True)
    config = resolve_config(trainer, format_options(options))
    spec = make_environment_spec(config)
    shared = "action_bounds" in read_shared_options(config.environment.id)
    says_bounds = "action_bounds" in given or is_built_into_gymnasium(config.environment.id) or shared
    if not says_bounds and any(each.name == "clip_action" for each in spec.wrappers):
        learning = " and, for its learning, --normalization and --output_activity" * (trainer == "hebbian")
        raise ValueError(
            f"Najarro & Risi's code has no conventions for {config.environment.id}: say with --action_bounds how its "
            "actions were bounded (clip, tanh, ...), and what else its training did, with --settle_steps, "
            f"--gymnasium_wrappers, --wrappers, --early_stop_negative_streak, --early_stop_grace_steps{learning}"
        )
    return config, spec, make_agent(config, *find_spaces(spec))
