"""Prepares runs: checks everything, then makes the folder of a new run or restores a run from its checkpoint."""

import os
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
from gymnasium import Space
from jaxtyping import Float32

from hebbes.contracts.policy import Layout
from hebbes.contracts.strategy import Strategy, TakesLayout
from hebbes.environments.environment_spec import EnvironmentSpec
from hebbes.evaluation.play import make_evaluation_spec
from hebbes.execution.chunks import Task
from hebbes.execution.engine_options import CHUNK_SIZES
from hebbes.execution.engines import make_engine
from hebbes.execution.episode import Agent
from hebbes.execution.observation_moments import NORMALIZATION_BUFFERS, read_moments
from hebbes.files import checkpoint as checkpoints
from hebbes.files.checkpoint import Checkpoint, Progress, load_newest_checkpoint
from hebbes.files.policy_file import get_policy_fields
from hebbes.recording.metrics import METRICS_CSV, count_missing_rows
from hebbes.registry.lookup import find_class, list_names
from hebbes.registry.users_classes import convert_errors, make_instance
from hebbes.training.assembly import choose_policy, find_spaces, make_agent, make_environment_spec
from hebbes.training.config import TrainConfig
from hebbes.training.contract_checks import try_policy, try_strategy
from hebbes.training.memory_check import check_run_memory
from hebbes.training.owners import get_saved_value
from hebbes.training.provenance import find_conditions
from hebbes.training.run_folder import (
    INIT_FROM,
    choose_folder,
    find_seed_folder,
    lock_folder,
    make_folder,
    make_folder_atomically,
    record_command,
    update_config,
    write_first_files,
    write_shared_files,
)
from hebbes.training.run_state import Run, capture_checkpoint
from hebbes.training.runs import Runs
from hebbes.training.starting_point import MAX_WEIGHTS, find_starting_point


def prepare(config: TrainConfig, read_options: Callable[[Path], TrainConfig] | None = None) -> Runs:
    """The runs that the options ask for, new or resumed: one, or one for each seed. The first of them is ready.

    ValueError if an option is wrong. Everything is checked before any file is written. Only the run of the first seed
    is checked, because the others differ in nothing but the seed. When several seeds are resumed, `read_options`
    returns the options of a run that has begun, from its folder.
    """
    if config.run.seeds == 1:
        run = _begin_run(config) if config.run.resume is None else _resume_run(config, Path(config.run.resume))
        return Runs(run, range(run.config.run.seed, run.config.run.seed + 1))
    seeds = range(config.run.seed, config.run.seed + config.run.seeds)
    if config.run.resume is None:
        first, top, lock = _begin_runs_of_seeds(config)
        return Runs(first, seeds, top=top, prepare_later=partial(_prepare_seed, config, top, read_options), lock=lock)
    top = Path(config.run.resume)
    lock, prepare_seed = lock_folder(top), partial(_prepare_seed, config, top, read_options)
    try:
        return Runs(prepare_seed(config.run.seed), seeds, top=top, prepare_later=prepare_seed, lock=lock)
    except BaseException:
        os.close(lock)
        raise


def _begin_run(config: TrainConfig) -> Run:
    """A new run in a new folder."""
    run = _assemble_run(config, choose_folder(config))
    start = capture_checkpoint(run, find_conditions())
    folder, lock = make_folder(config, lambda unfinished: write_first_files(unfinished, run.config, start))
    return replace(run, folder=folder, lock=lock)


def _begin_runs_of_seeds(config: TrainConfig) -> tuple[Run, Path, int]:
    """The first new run of several seeds, the folder of all of them, and the descriptor that locks it."""
    run = _assemble_run(config.change(run={"seeds": 1}), choose_folder(config))
    start = capture_checkpoint(run, find_conditions())

    def write_files(unfinished: Path) -> None:
        write_shared_files(unfinished, config)
        write_first_files(find_seed_folder(unfinished, config.run.seed), run.config, start)

    top, lock = make_folder(config, write_files)
    folder = find_seed_folder(top, config.run.seed)
    return replace(run, folder=folder, lock=lock_folder(folder)), top, lock


def _prepare_seed(config: TrainConfig, top: Path, read_options: Callable[[Path], TrainConfig] | None, seed: int) -> Run:
    """The run of one of the seeds in the folder `top`, new or resumed; `config` is that of all seeds."""
    folder = find_seed_folder(top, seed)
    if folder.exists():
        if read_options is None:
            raise ValueError(f"run folder {folder} exists already; give --resume {top}")
        return _resume_run(read_options(folder), folder)
    own = config.change(run={"seed": seed, "seeds": 1, "resume": None})
    start_file = top / INIT_FROM
    begun = own.change(run={"init_from": str(start_file)}) if start_file.exists() else own
    run = _assemble_run(begun, folder)
    run = replace(run, config=run.config.change(run={"init_from": config.run.init_from}))
    start = capture_checkpoint(run, find_conditions())
    lock = make_folder_atomically(folder, lambda unfinished: write_first_files(unfinished, run.config, start))
    return replace(run, lock=lock)


def _assemble_run(config: TrainConfig, folder: Path, checkpoint: Checkpoint | None = None) -> Run:
    """A run at its start or, with a checkpoint, in its saved state."""
    for logger in config.list_loggers():
        logger.check()
    environment = make_environment_spec(config)
    observation_space, action_space = find_spaces(environment)
    if config.run.test_episodes:
        _check_test(environment, observation_space, action_space)
    config = resolve_automatic_options(config, environment, observation_space)
    agent = make_agent(config, observation_space, action_space)
    if agent.policy.layout.num_params > MAX_WEIGHTS:
        found = get_policy_fields(agent.policy)
        sizes = {name: np.ravel(found[name]).tolist() for name in ("hidden_sizes", "recurrent_size") if name in found}
        described = ", by " + ", ".join(f"{name} {size}" for name, size in sizes.items()) if sizes else ""
        raise ValueError(
            f"the policy has {agent.policy.layout.num_params} parameters{described}; a policy file holds {MAX_WEIGHTS}"
        )
    needs = check_run_memory(config, agent, environment)
    if checkpoint is None:
        initial, buffers = find_starting_point(config, agent, environment)
        progress = Progress(moments=read_moments(buffers))
    else:
        _check_fits(checkpoint, agent)
        initial, buffers, progress = checkpoint.latest.weights, checkpoint.latest.buffers, checkpoint.progress
    agent.policy.check_buffers(buffers)
    try_policy(config.evolution.policy, agent.policy, initial, buffers, observation_space)
    constants = {name: array for name, array in buffers.items() if name not in NORMALIZATION_BUFFERS}
    strategy = _make_strategy(config, agent.policy.layout, initial)
    if checkpoint is None:
        _check_growth(config, strategy)
    else:
        strategy.load_state_dict(checkpoint.strategy)
    task = Task(agent, environment, config.run.seed)
    engine = make_engine(
        task,
        chunk_size=config.engine.chunk_size,
        threads=config.engine.threads,
        engine=config.engine.engine,
        episode_timeout=config.engine.episode_timeout,
    )
    return Run(config, task, strategy, engine, folder, progress, constants, needs)


def resolve_automatic_options(
    config: TrainConfig, environment: EnvironmentSpec, observation_space: Space
) -> TrainConfig:
    """The config with the policy and the chunk size filled in, where it left them to the environment."""
    if config.evolution.policy == "auto":
        config = _resolve_policy(config, observation_space)
    if config.engine.chunk_size is None:
        config = config.change(engine={"chunk_size": CHUNK_SIZES[environment.backend]})
    return config


def _resolve_policy(config: TrainConfig, observation_space: Space) -> TrainConfig:
    """The config with the policy that auto stands for; ValueError if it does not use an option that was typed."""
    policy = choose_policy(observation_space)
    try:
        return config.resolve_policy(policy)
    except ValueError as error:
        seen = observation_space.shape
        raise ValueError(f"{error}; for observations of shape {seen} --policy auto is {policy}") from None


def _make_strategy(config: TrainConfig, layout: Layout, initial: Float32[np.ndarray, " params"]) -> Strategy:
    """The strategy at its start. A user's own is tried first."""
    name = config.evolution.strategy
    found = find_class("strategy", name)

    def make_strategy() -> Strategy:
        strategy: Strategy = make_instance("strategy", name, found, config.settings, initial, config.run.seed)
        if isinstance(strategy, TakesLayout):
            with convert_errors("strategy", name):
                strategy.take_layout(layout)
        return strategy

    try_strategy(name, make_strategy, layout)
    return make_strategy()


def _check_growth(config: TrainConfig, strategy: Strategy) -> None:
    """ValueError if the population shall grow but cannot, or is too large from the start."""
    if config.evolution.num_interactions is None:
        return
    if not strategy.grows:
        growing = [name for name in list_names("strategy") if find_class("strategy", name).grows]
        raise ValueError(
            f"num_interactions is for strategies whose population can grow, {', '.join(growing)}; "
            f"got {config.evolution.strategy}"
        )
    try:
        population_size = len(strategy.ask(0)) - 1
    except FloatingPointError as error:
        raise ValueError(str(error)) from None
    least, most = 2 * population_size, config.evolution.population_size_max
    if most is not None and most < least:
        raise ValueError(f"population_size_max must be >= twice population_size, {least}, got {most}")


def _check_fits(checkpoint: Checkpoint, agent: Agent) -> None:
    """ValueError for a checkpoint of another policy."""
    progress, count = checkpoint.progress, agent.policy.layout.num_params
    for snapshot in (checkpoint.latest, progress.best):
        if snapshot is not None and len(snapshot.weights) != count:
            raise ValueError(f"{len(snapshot.weights)} weights for a policy of {count}")
    if progress.moments is not None and progress.moments.mean.shape != agent.policy.observation_shape:
        raise ValueError(f"statistics of {progress.moments.mean.shape} for {agent.policy.observation_shape}")


def _resume_run(config: TrainConfig, folder: Path) -> Run:
    """The run of a folder, in the state of its newest checkpoint."""
    try:
        lock = lock_folder(folder)
        try:
            return replace(_restore_run(config, folder), lock=lock)
        except BaseException:
            os.close(lock)
            raise
    except KeyError as error:
        raise ValueError(f"the checkpoint in {folder} lacks {error}") from error
    except OSError as error:
        raise ValueError(f"cannot resume {folder}: {error.strerror} {error.filename or ''}".rstrip()) from error


def _restore_run(config: TrainConfig, folder: Path) -> Run:
    checkpoint, remarks = load_newest_checkpoint(folder / checkpoints.FOLDER)
    run = _assemble_run(config, folder, checkpoint)
    if lost := count_missing_rows(folder / METRICS_CSV, checkpoint.progress.generation):
        remarks.append(f"{folder / METRICS_CSV}: {lost} rows are damaged or missing")
    for line in (*remarks, *_describe_differences(checkpoint, run)):
        print(line, file=sys.stderr)
    update_config(folder, run.config)
    record_command(folder)
    return run


def _describe_differences(checkpoint: Checkpoint, run: Run) -> list[str]:
    """At most one line: what differs between the conditions of the checkpoint and those of now."""
    then = {**checkpoint.conditions, "chunk_size": str(get_saved_value(checkpoint.config, "engine.chunk_size"))}
    now = {**find_conditions(), "chunk_size": str(run.config.engine.chunk_size)}
    found = [
        f"{name} was {then.get(name, 'absent')}, is {now.get(name, 'absent')}"
        for name in dict.fromkeys((*then, *now))
        if then.get(name) != now.get(name)
    ]
    if now["hebbes"].endswith("+"):
        found.append(f"hebbes {now['hebbes']} has files that differ from the commit")
    if not found:
        return []
    return [f"{run.folder}: the last bits may differ from those of an uninterrupted run: {'; '.join(found)}"]


def _check_test(environment: EnvironmentSpec, *trained_in: Space) -> None:
    """ValueError, before training, if the test could not be played: its spaces differ from those of training."""
    reference = make_evaluation_spec(environment)
    for trained, tested in zip(trained_in, find_spaces(reference), strict=True):
        if (type(trained), trained.shape) != (type(tested), tested.shape):
            raise ValueError(
                f"environment {environment.environment!r} has {trained} on {environment.backend}, "
                f"but {tested} on {reference.backend}; train with --backend {reference.backend}"
            )
