"""Where a run starts: new weights, or those of a policy file, and their buffers."""

from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float32

from hebbes.contracts.errors import prefix_errors, say
from hebbes.contracts.policy import Buffers, count_reference_frames
from hebbes.contracts.randomness import Purpose, make_generator
from hebbes.contracts.yaml_text import format_yaml_line
from hebbes.environments.environment_spec import EnvironmentSpec
from hebbes.environments.part_spec import PartSpec
from hebbes.environments.reference_batch import collect_reference_batch
from hebbes.execution.episode import Agent
from hebbes.files.policy_file import get_policy_fields, read_policy_file
from hebbes.files.torch_file import is_torch_file, read_torch_weights
from hebbes.recording.standard_output import make_printable
from hebbes.training.config import TrainConfig
from hebbes.training.owners import find_trainer

COMPARED = ("environment", "env_kwargs", "gymnasium_wrappers", "wrappers", "morphologies")
"""Fields of an environment that a policy is trained for. The back end is not among them: it should not matter."""


def draw_initial_params(config: TrainConfig, agent: Agent) -> Float32[np.ndarray, " params"]:
    """The new parameters of this seed."""
    return agent.policy.initial_params(make_generator(config.run.seed, Purpose.INITIAL_PARAMS))


def find_starting_point(
    config: TrainConfig, agent: Agent, environment: EnvironmentSpec
) -> tuple[Float32[np.ndarray, " params"], Buffers]:
    """Parameters and buffers to start from; ValueError if those of a file are for another network."""
    if config.run.init_from is None:
        return draw_initial_params(config, agent), _collect_virtual_batch(config, agent, environment)
    normalizes = find_trainer(config.trainer).normalizes_observations(config)
    if is_torch_file(Path(config.run.init_from)):
        with prefix_errors("init_from "):
            params = read_torch_weights(Path(config.run.init_from), agent.policy)
        _check_normalization(config, False, normalizes)
        return params, _collect_virtual_batch(config, agent, environment)
    with prefix_errors("init_from "):
        saved = read_policy_file(Path(config.run.init_from), config.trusted_modules)
    found, wanted = _describe_agent(Agent(saved.policy, saved.action_head)), _describe_agent(agent)
    if found != wanted:
        differing = [name for name in {**wanted, **found} if found.get(name) != wanted.get(name)]
        theirs, ours = (
            ", ".join(f"{name} {one[name]!r}" for name in differing if name in one) for one in (found, wanted)
        )
        advice = " (--action_bounds)" * ("action_head" in differing)
        raise ValueError(f"init_from {config.run.init_from} holds {theirs}, but these options make {ours}{advice}")
    normalized = "observation_mean" in saved.buffers  # also where no observation has been counted yet
    _check_normalization(config, normalized, normalizes)
    return saved.weights, saved.buffers


def warn_of_other_environment(config: TrainConfig, environment: EnvironmentSpec) -> None:
    """Says on standard error how the environment of the file to start from differs, although its network fits."""
    if config.run.init_from is None or is_torch_file(Path(config.run.init_from)):
        return
    saved = read_policy_file(Path(config.run.init_from), config.trusted_modules).environment
    pairs = {name: (getattr(saved, name), getattr(environment, name)) for name in COMPARED}
    found = [f"{name} was {_format(then)}, is {_format(now)}" for name, (then, now) in pairs.items() if then != now]
    if found:
        say(f"init_from {config.run.init_from} is of another environment: {'; '.join(found)}")


def _check_normalization(config: TrainConfig, normalized: bool, normalizes: bool) -> None:
    """ValueError if observations were normalized in the file's training and are not here, or the other way round."""
    if normalized != normalizes:
        raise ValueError(
            f"init_from {config.run.init_from} was trained {'with' if normalized else 'without'} "
            f"observation_normalization, which is {'on' if normalizes else 'off'} here"
        )


def _format(value: Any) -> str:
    """A part of the description of an environment, as an option holds it."""
    if isinstance(value, tuple):
        value = [each.entry if isinstance(each, PartSpec) else each for each in value]
    return make_printable(value if isinstance(value, str) else format_yaml_line(value))


def _collect_virtual_batch(config: TrainConfig, agent: Agent, environment: EnvironmentSpec) -> Buffers:
    """The virtual batch if the policy takes one."""
    num_frames = count_reference_frames(agent.policy)
    return {"virtual_batch": collect_reference_batch(environment, num_frames, config.run.seed)} if num_frames else {}


def _describe_agent(agent: Agent) -> dict[str, Any]:
    """All that defines an agent, by name, without options that only affect its initial weights."""
    kind = type(agent.policy)
    options = {"policy": f"{kind.__module__}:{kind.__qualname__}", "action_head": agent.action_head}
    only_start = {each.name for each in fields(kind) if each.metadata.get("only_start")}  # type: ignore[arg-type]  # policies are dataclasses
    return options | {name: value for name, value in get_policy_fields(agent.policy).items() if name not in only_start}
