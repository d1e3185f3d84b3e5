"""Where a run starts: new weights, or those of a policy file, with the buffers that go with them."""

from dataclasses import fields
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float32

from hebbes.contracts.policy import Buffers
from hebbes.contracts.randomness import Purpose, stream
from hebbes.environments.reference_batch import collect
from hebbes.environments.spec import EnvironmentSpec
from hebbes.execution.episode import Agent
from hebbes.execution.observation_moments import moments_of
from hebbes.files.checksummed_file import MAX_HEADER_BYTES
from hebbes.files.policy_file import MAX_FILE_BYTES, fields_of, load_policy
from hebbes.files.torch_file import is_legacy, legacy_weights
from hebbes.training.config import TrainConfig

MAX_WEIGHTS = (MAX_FILE_BYTES - MAX_HEADER_BYTES) // 4
"""Numbers that a policy file holds."""


def starting_point(
    config: TrainConfig, agent: Agent, environment: EnvironmentSpec
) -> tuple[Float32[np.ndarray, " params"], Buffers]:
    """Parameters and buffers to start from; ValueError if a file's are of another network."""
    fresh = _virtual_batch(config, agent, environment)
    if config.init_from is None:
        return agent.policy.initial_params(stream(config.seed, Purpose.INITIAL_PARAMS)), fresh
    if is_legacy(Path(config.init_from)):
        return legacy_weights(Path(config.init_from), agent.policy), fresh
    saved = load_policy(Path(config.init_from), config.trusted_modules)
    found, asked = _described(Agent(saved.policy, saved.action_head)), _described(agent)
    if found != asked:
        differing = [name for name in {**asked, **found} if found.get(name) != asked.get(name)]
        theirs, ours = (
            ", ".join(f"{name} {one[name]!r}" for name in differing if name in one) for one in (found, asked)
        )
        raise ValueError(f"init_from {config.init_from} holds {theirs}, but these options make {ours}")
    moments = moments_of(saved.buffers)
    if (moments is not None) != config.observation_normalization:
        raise ValueError(
            f"init_from {config.init_from} was trained {'with' if moments else 'without'} observation_normalization, "
            f"which is {'on' if config.observation_normalization else 'off'} here"
        )
    return saved.weights, saved.buffers


def _virtual_batch(config: TrainConfig, agent: Agent, environment: EnvironmentSpec) -> Buffers:
    """The reference batch if the policy takes one; ValueError where no policy file could hold it."""
    num_frames = fields_of(agent.policy).get("virtual_batch", 0)
    most = (MAX_WEIGHTS - agent.policy.layout.num_params) // prod(agent.policy.observation_shape)
    if num_frames > most:
        raise ValueError(f"virtual_batch must be <= {most}, got {num_frames}: a policy file holds no more frames")
    return {"virtual_batch": collect(environment, num_frames, config.seed)} if num_frames else {}


def _described(agent: Agent) -> dict[str, Any]:
    """All that makes an agent, by name; not what only says where its search starts."""
    kind = type(agent.policy)
    options = {"policy": f"{kind.__module__}:{kind.__qualname__}", "action_head": agent.action_head}
    only_start = {each.name for each in fields(kind) if each.metadata.get("only_start")}  # type: ignore[arg-type]  # policies are dataclasses
    return options | {name: value for name, value in fields_of(agent.policy).items() if name not in only_start}
