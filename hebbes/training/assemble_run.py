"""Assembles a run: checks everything that it needs, and makes its policy, its trainer and its engine."""

from contextlib import ExitStack, closing
from dataclasses import replace
from math import prod
from pathlib import Path

import numpy as np
from gymnasium import Space

from hebbes.contracts.policy import count_reference_frames
from hebbes.contracts.trainer import Progress
from hebbes.environments.environment_spec import EnvironmentSpec
from hebbes.environments.trial import find_spaces
from hebbes.evaluation.play import make_evaluation_spec
from hebbes.execution.chunks import Task
from hebbes.execution.engines import check_may_start_processes, make_engine
from hebbes.execution.episode import Agent
from hebbes.execution.provenance import find_conditions
from hebbes.files.checkpoint import Checkpoint
from hebbes.files.policy_file import MAX_WEIGHTS, check_can_be_saved, get_policy_fields
from hebbes.policies.cnn import can_convolve
from hebbes.recording.loggers import check_logger
from hebbes.registry.users_classes import convert_errors, is_users_class
from hebbes.reporting.video import check_encoder
from hebbes.training.agent_and_environment import make_agent, make_environment_spec
from hebbes.training.config import TrainConfig
from hebbes.training.contract_checks import try_policy
from hebbes.training.memory_check import check_run_memory
from hebbes.training.owners import AUTO, find_trainer
from hebbes.training.run_state import Run
from hebbes.training.starting_point import draw_initial_params, find_starting_point


def assemble_run(config: TrainConfig, folder: Path, checkpoint: Checkpoint | None = None) -> Run:
    """A run at its start or, with a checkpoint, in its saved state; ValueError if an option is wrong."""
    for logger in config.list_loggers():
        check_logger(logger)
    environment = make_environment_spec(config)
    observation_space, action_space = find_spaces(environment)
    _check_training_wrappers(environment, observation_space, action_space)
    if config.run.test_episodes:
        _check_test(environment, observation_space, action_space)
    if config.run.video_every is not None:
        _check_films(environment)
    config = resolve_policy(config, observation_space)
    agent = make_agent(config, observation_space, action_space)
    _check_size(agent)
    needs = check_run_memory(config, agent, environment)
    if checkpoint is None:
        name, trusted = config.choices.policy, config.trusted_modules
        check_can_be_saved(name, agent.policy, agent.action_head, environment, trusted)
        initial, buffers = find_starting_point(config, agent, environment)
        progress, conditions = Progress(), find_conditions()
    else:
        _check_fits(checkpoint, agent)
        # not today's weights, from which the initial sigma might be too small to start; the state replaces them
        initial, buffers = draw_initial_params(config, agent), checkpoint.latest.buffers
        progress, conditions = checkpoint.progress, checkpoint.conditions
    with convert_errors("policy", config.choices.policy):
        agent.policy.check_buffers(buffers)
    observation = np.zeros(observation_space.shape or (), observation_space.dtype)
    rank = find_trainer(config.trainer).measure_search(config, agent.policy).rank
    try_policy(config.choices.policy, agent.policy, initial, buffers, observation, rank)
    task = Task(agent, environment, config.run.seed, config.modules_of_members)
    with ExitStack() as made:
        trainer = made.enter_context(closing(find_trainer(config.trainer)(config, task, initial, buffers)))
        if checkpoint is not None:
            trainer.set_state(checkpoint.state)
        run = Run(config, task, trainer, make_engine(task, config.engine), folder, progress, conditions, needs)
        made.pop_all()
    return run


def resolve_policy(config: TrainConfig, observation_space: Space) -> TrainConfig:
    """The config with the policy that auto stands for; ValueError if it does not use an option that was typed."""
    if config.choices.policy != AUTO:
        return config
    policy = "cnn" if can_convolve(observation_space.shape or ()) else "mlp"  # for images that are large enough
    try:
        return config.with_policy(policy)
    except ValueError as error:
        seen = observation_space.shape
        raise ValueError(f"{error}; for observations of shape {seen} --policy auto is {policy}") from None


def _check_training_wrappers(environment: EnvironmentSpec, observation_space: Space, action_space: Space) -> None:
    """ValueError if wrappers that evaluations leave out change shapes, types or actions; ours do not."""
    names = [each.name for each in environment.training_wrappers if is_users_class(each.name)]
    if not names:
        return
    observed, acted = find_spaces(replace(environment, training_wrappers=()))
    if _describe_kind(observation_space) != _describe_kind(observed) or action_space != acted:
        raise ValueError(
            f"wrappers {', '.join(names)}: what is training_only must not change shapes, types or actions, because "
            f"evaluations leave it out: {observation_space} and {action_space} with it, {observed} and {acted} without"
        )


def _describe_kind(space: Space) -> tuple[object, ...]:
    """All but its bounds."""
    return type(space), space.shape, space.dtype


def _check_test(environment: EnvironmentSpec, *trained_in: Space) -> None:
    """ValueError, before training, if the test could not be played: its spaces differ from those of training."""
    reference = make_evaluation_spec(environment)
    for trained, tested in zip(trained_in, find_spaces(reference), strict=True):
        if (type(trained), trained.shape) != (type(tested), tested.shape):
            known = f"environment {environment.environment!r} has {trained} on {environment.backend}, but {tested} "
            if environment.backend == reference.backend:
                raise ValueError(f"{known}when it is made again: its spaces must not change")
            raise ValueError(f"{known}on {reference.backend}; train with --backend {reference.backend}")


def _check_films(environment: EnvironmentSpec) -> None:
    """ValueError, before training, if kept policies could not be filmed."""
    check_encoder("video_every")
    check_may_start_processes("video_every")
    if make_evaluation_spec(environment).backend != "gymnasium":
        raise ValueError(f"video_every needs the gymnasium back end, which {environment.environment} does not have")


def _check_size(agent: Agent) -> None:
    """ValueError for more weights, or a larger virtual batch, than a policy file holds."""
    if agent.policy.layout.num_params > MAX_WEIGHTS:
        found = get_policy_fields(agent.policy)
        sizes = {name: np.ravel(found[name]).tolist() for name in ("hidden_sizes", "recurrent_size") if name in found}
        described = ", by " + ", ".join(f"{name} {size}" for name, size in sizes.items()) if sizes else ""
        raise ValueError(
            f"the policy has {agent.policy.layout.num_params} parameters{described}; a policy file holds {MAX_WEIGHTS}"
        )
    num_frames = count_reference_frames(agent.policy)
    most = (MAX_WEIGHTS - agent.policy.layout.num_params) // prod(agent.policy.observation_shape)
    if num_frames > most:
        raise ValueError(f"virtual_batch must be <= {most}, got {num_frames}: a policy file holds no more frames")


def _check_fits(checkpoint: Checkpoint, agent: Agent) -> None:
    """ValueError for a checkpoint of another policy."""
    count = agent.policy.layout.num_params
    for snapshot in (checkpoint.latest, checkpoint.progress.best):
        if snapshot is not None and len(snapshot.weights) != count:
            raise ValueError(f"{len(snapshot.weights)} weights for a policy of {count}")
