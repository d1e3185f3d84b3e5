"""Preparation of runs: everything is checked, then folders are made, or a run is put back from its checkpoint."""

import os
import sys
from dataclasses import replace
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from gymnasium import Space
from jaxtyping import Float32

from contracts.policy import Buffers
from contracts.randomness import Purpose, stream
from contracts.strategy import Strategy, TakesLayout
from reporting.metrics import METRICS_CSV, missing_rows
from rollouts.chunks import Task
from rollouts.engines import CHUNK_SIZES, make_engine
from rollouts.environments import EnvironmentSpec
from rollouts.episode import Agent
from rollouts.moments import STATISTICS, moments_of
from rollouts.registry import lookup, names
from rollouts.virtual_batch import collect
from training import checkpoint as checkpoints
from training.assembly import environment_spec, make_agent, spaces
from training.checked_file import MAX_HEADER_BYTES
from training.checkpoint import Checkpoint, Progress, newest_checkpoint
from training.config import TrainConfig
from training.evaluation import environment_for
from training.legacy_file import is_legacy, legacy_weights
from training.loop import Run, captured
from training.machine import conditions
from training.memory_check import check_run
from training.policy_file import MAX_FILE_BYTES, fields_of, load_policy
from training.run_folder import chosen_folder, hold, make_folder, note_command, update_config

MAX_WEIGHTS = (MAX_FILE_BYTES - MAX_HEADER_BYTES) // 4


def prepare(config: TrainConfig) -> list[Run]:
    """The runs that the options ask for, ready to be executed one after the other: one for each seed, or one resumed.

    Everything is checked before any file is written. Raises ValueError where something does not fit.
    """
    if config.resume is not None:
        return [_resumed(config, Path(config.resume))]
    top = chosen_folder(config)
    several = config.seeds > 1
    runs = {}
    for seed in range(config.seed, config.seed + config.seeds):
        name = f"seed{seed}" if several else "."
        runs[name] = _assembled(replace(config, seed=seed, seeds=1), top / name)
    now = conditions()
    make_folder(top, config, {name: (run.config, captured(run, now)) for name, run in runs.items()})
    return [replace(run, lock=hold(run.folder)) for run in runs.values()]


def _assembled(config: TrainConfig, folder: Path, checkpoint: Checkpoint | None = None) -> Run:
    """A run at its start, or where the checkpoint was written."""
    environment = environment_spec(config)
    observation_space, action_space = spaces(environment)
    if config.test_episodes:
        _check_test(environment, observation_space, action_space)
    config = settled(config, environment, observation_space)
    agent = make_agent(config, observation_space, action_space)
    if agent.policy.layout.num_params > MAX_WEIGHTS:
        sizes = f", with hidden_sizes {list(config.hidden_sizes)}" if "hidden_sizes" in fields_of(agent.policy) else ""
        raise ValueError(
            f"the policy has {agent.policy.layout.num_params} parameters{sizes}; a policy file holds {MAX_WEIGHTS}"
        )
    needs = check_run(config, agent, environment)
    if checkpoint is None:
        initial, buffers = _start(config, agent, environment)
        progress = Progress(moments=moments_of(buffers))
    else:
        _check_fits(checkpoint, agent)
        initial, buffers, progress = checkpoint.latest.weights, checkpoint.latest.buffers, checkpoint.progress
    agent.policy.check_buffers(buffers)
    constants = {name: array for name, array in buffers.items() if name not in STATISTICS}
    strategy = lookup("strategies", config.strategy)(config.settings, initial, config.seed)
    if isinstance(strategy, TakesLayout):
        strategy.take_layout(agent.policy.layout)
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


def settled(config: TrainConfig, environment: EnvironmentSpec, observation_space: Space) -> TrainConfig:
    """The config with the policy and the chunk size that it leaves to the environment."""
    if config.policy == "auto":
        config = replace(config, policy="cnn" if len(observation_space.shape or ()) == 3 else "mlp")
    if config.chunk_size is None:
        config = replace(config, chunk_size=CHUNK_SIZES[environment.backend])
    return config


def _check_growth(config: TrainConfig, strategy: Strategy) -> None:
    """Refuses a population that is to grow and cannot, or that is too large from the start."""
    if config.num_interactions is None:
        return
    if not strategy.grows:
        growing = [name for name in names("strategies") if lookup("strategies", name).grows]
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


def _start(
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
    if config.virtual_batch and not num_frames:
        raise ValueError(f"virtual_batch is for policies with convolutions, cnn and conv_lstm, got {config.policy!r}")
    most = (MAX_WEIGHTS - agent.policy.layout.num_params) // prod(agent.policy.observation_shape)
    if num_frames > most:
        raise ValueError(f"virtual_batch must be <= {most}, got {num_frames}: a policy file holds no more frames")
    return {"virtual_batch": collect(environment, num_frames, config.seed)} if num_frames else {}


def _described(agent: Agent) -> dict[str, Any]:
    """All that makes an agent, by name."""
    kind = type(agent.policy)
    options = {"policy": f"{kind.__module__}:{kind.__qualname__}", "action_head": agent.action_head}
    return options | fields_of(agent.policy)
