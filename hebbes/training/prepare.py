"""Preparation of runs: everything is checked, then a folder is made, or a run is put back from its checkpoint."""

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
from hebbes.environments.spec import EnvironmentSpec
from hebbes.evaluation.play import environment_for
from hebbes.execution.chunks import Task
from hebbes.execution.engines import CHUNK_SIZES, make_engine
from hebbes.execution.episode import Agent
from hebbes.execution.observation_moments import STATISTICS, moments_of
from hebbes.files import checkpoint as checkpoints
from hebbes.files.checkpoint import Checkpoint, Progress, newest_checkpoint
from hebbes.files.policy_file import fields_of
from hebbes.recording.metrics import METRICS_CSV, missing_rows
from hebbes.registry.lookup import lookup, names
from hebbes.registry.users_classes import make, naming
from hebbes.training.assembly import automatic_policy, environment_spec, make_agent, spaces
from hebbes.training.config import TrainConfig
from hebbes.training.contract_checks import try_policy, try_strategy
from hebbes.training.generation_loop import Run, captured
from hebbes.training.memory_check import check_run
from hebbes.training.provenance import conditions
from hebbes.training.run_folder import (
    INIT_FROM,
    chosen_folder,
    hold,
    make_folder,
    make_whole,
    note_command,
    seed_folder,
    update_config,
    write_start,
    write_top,
)
from hebbes.training.runs import Runs
from hebbes.training.starting_point import MAX_WEIGHTS, starting_point
from hebbes.training.unused_options import check_used


def prepare(config: TrainConfig, options_of: Callable[[Path], TrainConfig] | None = None) -> Runs:
    """The runs that the options ask for: one, or one for each seed, begun or going on; the first of them is ready.

    Everything is checked before any file is written, by the first seed for all, which differ in nothing else. Raises
    ValueError where something does not fit. Where several seeds go on, `options_of` gives the options of one that has
    begun, by its folder.
    """
    if config.seeds == 1:
        run = _begun(config) if config.resume is None else _resumed(config, Path(config.resume))
        return Runs(run, range(run.config.seed, run.config.seed + 1))
    seeds = range(config.seed, config.seed + config.seeds)
    if config.resume is None:
        first, top, lock = _begun_together(config)
        return Runs(first, seeds, top=top, later=partial(_run_of_seed, config, top, options_of), lock=lock)
    top = Path(config.resume)
    lock, later = hold(top), partial(_run_of_seed, config, top, options_of)
    try:
        return Runs(later(config.seed), seeds, top=top, later=later, lock=lock)
    except BaseException:
        os.close(lock)
        raise


def _begun(config: TrainConfig) -> Run:
    """A new run in a folder of its own."""
    run = _assembled(config, chosen_folder(config))
    start = captured(run, conditions())
    folder, lock = make_folder(config, lambda unfinished: write_start(unfinished, run.config, start))
    return replace(run, folder=folder, lock=lock)


def _begun_together(config: TrainConfig) -> tuple[Run, Path, int]:
    """The first of the new runs of several seeds, the folder of them all, and what holds that."""
    run = _assembled(replace(config, seeds=1), chosen_folder(config))
    start = captured(run, conditions())

    def fill(unfinished: Path) -> None:
        write_top(unfinished, config)
        write_start(seed_folder(unfinished, config.seed), run.config, start)

    top, lock = make_folder(config, fill)
    folder = seed_folder(top, config.seed)
    return replace(run, folder=folder, lock=hold(folder)), top, lock


def _run_of_seed(config: TrainConfig, top: Path, options_of: Callable[[Path], TrainConfig] | None, seed: int) -> Run:
    """The run of one of the seeds in `top`, which begins now or goes on; `config` is for them all."""
    folder = seed_folder(top, seed)
    if folder.exists():
        if options_of is None:
            raise ValueError(f"run folder {folder} exists already; go on with {top} by --resume")
        return _resumed(options_of(folder), folder)
    own = replace(config, seed=seed, seeds=1, resume=None)
    kept = top / INIT_FROM
    run = _assembled(replace(own, init_from=str(kept)) if kept.exists() else own, folder)
    run = replace(run, config=replace(run.config, init_from=config.init_from))
    start = captured(run, conditions())
    return replace(run, lock=make_whole(folder, lambda unfinished: write_start(unfinished, run.config, start)))


def _assembled(config: TrainConfig, folder: Path, checkpoint: Checkpoint | None = None) -> Run:
    """A run at its start, or where the checkpoint was written."""
    environment = environment_spec(config)
    observation_space, action_space = spaces(environment)
    if config.test_episodes:
        _check_test(environment, observation_space, action_space)
    config = settle(config, environment, observation_space)
    agent = make_agent(config, observation_space, action_space)
    if agent.policy.layout.num_params > MAX_WEIGHTS:
        found = fields_of(agent.policy)
        sizes = {name: np.ravel(found[name]).tolist() for name in ("hidden_sizes", "recurrent_size") if name in found}
        described = ", by " + ", ".join(f"{name} {size}" for name, size in sizes.items()) if sizes else ""
        raise ValueError(
            f"the policy has {agent.policy.layout.num_params} parameters{described}; a policy file holds {MAX_WEIGHTS}"
        )
    needs = check_run(config, agent, environment)
    if checkpoint is None:
        initial, buffers = starting_point(config, agent, environment)
        progress = Progress(moments=moments_of(buffers))
    else:
        _check_fits(checkpoint, agent)
        initial, buffers, progress = checkpoint.latest.weights, checkpoint.latest.buffers, checkpoint.progress
    agent.policy.check_buffers(buffers)
    try_policy(config.policy, agent.policy, initial, buffers, observation_space)
    constants = {name: array for name, array in buffers.items() if name not in STATISTICS}
    strategy = _strategy(config, agent.policy.layout, initial)
    if checkpoint is None:
        _check_growth(config, strategy)
    else:
        strategy.load_state_dict(checkpoint.strategy)
    task = Task(agent, environment, config.seed)
    engine = make_engine(
        task,
        chunk_size=config.chunk_size,
        threads=config.threads,
        engine=config.engine,
        episode_timeout=config.episode_timeout,
    )
    return Run(config, task, strategy, engine, folder, progress, constants, needs)


def settle(config: TrainConfig, environment: EnvironmentSpec, observation_space: Space) -> TrainConfig:
    """The config with the policy and the chunk size that it leaves to the environment."""
    if config.policy == "auto":
        config = _without_auto(config, observation_space)
    if config.chunk_size is None:
        config = replace(config, chunk_size=CHUNK_SIZES[environment.backend])
    return config


def _without_auto(config: TrainConfig, observation_space: Space) -> TrainConfig:
    """The config with the policy that auto stands for; ValueError where that does not use what was typed."""
    chosen = replace(config, policy=automatic_policy(observation_space))
    try:
        check_used(chosen)
    except ValueError as error:
        seen = observation_space.shape
        raise ValueError(f"{error}; for observations of shape {seen} --policy auto is {chosen.policy}") from None
    return chosen


def _strategy(config: TrainConfig, layout: Layout, initial: Float32[np.ndarray, " params"]) -> Strategy:
    """The strategy at its start; a user's own is tried first."""
    found = lookup("strategy", config.strategy)

    def make_one() -> Strategy:
        strategy: Strategy = make("strategy", config.strategy, found, config.settings, initial, config.seed)
        if isinstance(strategy, TakesLayout):
            with naming("strategy", config.strategy):
                strategy.take_layout(layout)
        return strategy

    try_strategy(config.strategy, make_one, layout)
    return make_one()


def _check_growth(config: TrainConfig, strategy: Strategy) -> None:
    """Refuses a population that is to grow and cannot, or that is too large from the start."""
    if config.num_interactions is None:
        return
    if not strategy.grows:
        growing = [name for name in names("strategy") if lookup("strategy", name).grows]
        raise ValueError(
            f"num_interactions is for strategies whose population can grow, {', '.join(growing)}; got {config.strategy}"
        )
    try:
        popsize = len(strategy.ask(0)) - 1
    except FloatingPointError as error:
        raise ValueError(str(error)) from None
    if config.popsize_max is not None and config.popsize_max < 2 * popsize:
        raise ValueError(f"popsize_max must be >= twice popsize, {2 * popsize}, got {config.popsize_max}")


def _check_fits(checkpoint: Checkpoint, agent: Agent) -> None:
    """Refuses a checkpoint of another policy."""
    progress, count = checkpoint.progress, agent.policy.layout.num_params
    for snapshot in (checkpoint.latest, progress.best):
        if snapshot is not None and len(snapshot.weights) != count:
            raise ValueError(f"{len(snapshot.weights)} weights for a policy of {count}")
    if progress.moments is not None and progress.moments.mean.shape != agent.policy.observation_shape:
        raise ValueError(f"statistics of {progress.moments.mean.shape} for {agent.policy.observation_shape}")


def _resumed(config: TrainConfig, folder: Path) -> Run:
    """The run of a folder, where its newest checkpoint left it."""
    try:
        lock = hold(folder)
        try:
            return replace(_restored(config, folder), lock=lock)
        except BaseException:
            os.close(lock)
            raise
    except KeyError as error:
        raise ValueError(f"the checkpoint in {folder} lacks {error}") from error
    except OSError as error:
        raise ValueError(f"cannot resume {folder}: {error.strerror} {error.filename or ''}".rstrip()) from error


def _restored(config: TrainConfig, folder: Path) -> Run:
    checkpoint, remarks = newest_checkpoint(folder / checkpoints.FOLDER)
    run = _assembled(config, folder, checkpoint)
    if lost := missing_rows(folder / METRICS_CSV, checkpoint.progress.generation):
        remarks.append(f"{folder / METRICS_CSV}: {lost} rows are damaged or missing")
    for line in (*remarks, *_differences(checkpoint, run)):
        print(line, file=sys.stderr)
    update_config(folder, run.config)
    note_command(folder)
    return run


def _differences(checkpoint: Checkpoint, run: Run) -> list[str]:
    """A line that says what differs from the conditions of the checkpoint, if anything does."""
    then = {**checkpoint.conditions, "chunk_size": str(checkpoint.config["chunk_size"])}
    now = {**conditions(), "chunk_size": str(run.config.chunk_size)}
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
    """Refuses, before the training, an environment in which the test after it could not be played."""
    reference = environment_for(environment)
    for trained, tested in zip(trained_in, spaces(reference), strict=True):
        if (type(trained), trained.shape) != (type(tested), tested.shape):
            raise ValueError(
                f"environment {environment.environment!r} has {trained} on {environment.backend}, "
                f"but {tested} on {reference.backend}; train with --backend {reference.backend}"
            )
