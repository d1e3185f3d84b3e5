"""Training runs: everything is checked and made by `prepare`, then `execute` trains, draws and tests."""

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from gymnasium import Space
from jaxtyping import Float32, Float64

from contracts.engine import Moments
from contracts.randomness import Purpose, stream
from contracts.strategy import Strategy
from reporting.console import Console
from reporting.metrics import MetricsWriter
from reporting.plot import plot_learning_curve
from rollouts.chunks import Task
from rollouts.engines import CHUNK_SIZES, make_engine
from rollouts.environments import EnvironmentSpec
from rollouts.episode import Agent
from rollouts.moments import moments_of
from rollouts.registry import lookup
from training import checkpoint as checkpoints
from training.assembly import environment_spec, make_agent, spaces
from training.checked_file import MAX_HEADER_BYTES
from training.checkpoint import Checkpoint, Progress, newest_checkpoint
from training.config import TrainConfig
from training.evaluation import environment_for, play, summarise
from training.legacy_file import is_legacy, legacy_weights
from training.loop import Run, Trainer, captured, evaluation_cap
from training.machine import conditions
from training.policy_file import MAX_FILE_BYTES, load_policy
from training.run_folder import (
    chosen_folder,
    hold,
    make_folder,
    note_command,
    resume_command,
    runs_in,
    update_config,
)
from training.summary_table import runs_table

METRICS_CSV = "metrics.csv"
MAX_WEIGHTS = (MAX_FILE_BYTES - MAX_HEADER_BYTES) // 4


def prepare(config: TrainConfig) -> list[Run]:
    """The runs that the options ask for, one for each seed, ready to be executed one after the other.

    Everything is checked before any file is written. Raises ValueError where something does not fit.
    """
    if config.resume is not None:
        return [_resumed(config, folder) for folder in runs_in(Path(config.resume))]
    top = chosen_folder(config)
    several = config.seeds > 1
    runs = {}
    for seed in range(config.seed, config.seed + config.seeds):
        name = f"seed{seed}" if several else "."
        runs[name] = _assembled(replace(config, seed=seed, seeds=1), top / name)
    now = conditions()
    make_folder(top, {name: (run.config, captured(run, now)) for name, run in runs.items()})
    return [replace(run, lock=hold(run.folder)) for run in runs.values()]


def _assembled(config: TrainConfig, folder: Path, checkpoint: Checkpoint | None = None) -> Run:
    """A run at its start, or where the checkpoint was written."""
    environment = environment_spec(config)
    observation_space, action_space = spaces(environment)
    if config.test_episodes:
        _check_test(environment, observation_space, action_space)
    if config.policy == "auto":
        config = replace(config, policy="cnn" if len(observation_space.shape or ()) == 3 else "mlp")
    if config.chunk_size is None:
        config = replace(config, chunk_size=CHUNK_SIZES[environment.backend])
    agent = make_agent(config, observation_space, action_space)
    if agent.policy.layout.num_params > MAX_WEIGHTS:
        raise ValueError(
            f"the policy has {agent.policy.layout.num_params} parameters; a policy file holds {MAX_WEIGHTS}"
        )
    if checkpoint is None:
        initial, moments = _start(config, agent)
        progress = Progress(moments=moments)
    else:
        initial, progress = checkpoint.latest.weights, checkpoint.progress
    if initial.shape != (agent.policy.layout.num_params,):
        raise ValueError(f"the checkpoint in {folder} does not fit the policy that its options make")
    strategy = lookup("strategies", config.strategy)(config.settings, initial, config.seed)
    if checkpoint is not None:
        _restore(strategy, checkpoint.strategy, folder)
    task = Task(agent, environment, config.seed)
    engine = make_engine(
        task,
        chunk_size=config.chunk_size,
        threads=config.threads,
        engine=config.engine,
        episode_timeout=config.episode_timeout,
    )
    return Run(config, task, strategy, engine, folder, -1, progress)


def _restore(strategy: Strategy, state: Mapping[str, np.ndarray], folder: Path) -> None:
    """Lets the strategy go on from a checkpoint's state; ValueError if it is another strategy's."""
    expected = {name: array.shape for name, array in strategy.state_dict().items()}
    if {name: array.shape for name, array in state.items()} != expected:
        raise ValueError(f"the checkpoint in {folder} does not fit the strategy that its options make")
    strategy.load_state_dict(state)


def _resumed(config: TrainConfig, folder: Path) -> Run:
    """The run of a folder, where its newest checkpoint left it."""
    try:
        lock = hold(folder)
        checkpoint, damaged = newest_checkpoint(folder / checkpoints.FOLDER)
        own = replace(config, seed=checkpoint.config["seed"])
        run = _assembled(own, folder, checkpoint)
        for line in (*damaged, *_differences(checkpoint, run)):
            print(line, file=sys.stderr)
        update_config(folder, run.config)
        note_command(folder)
    except OSError as error:
        raise ValueError(f"cannot resume {folder}: {error.strerror}: {error.filename}") from error
    return replace(run, lock=lock)


def _differences(checkpoint: Checkpoint, run: Run) -> list[str]:
    """A line that says what differs from the conditions of the checkpoint, if anything does."""
    then = {**checkpoint.conditions, "chunk_size": str(checkpoint.config["chunk_size"])}
    now = {**conditions(), "chunk_size": str(run.config.chunk_size)}
    found = [
        f"{name} was {then.get(name, 'absent')}, is {now.get(name, 'absent')}"
        for name in dict.fromkeys((*then, *now))
        if then.get(name) != now.get(name)
    ]
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


def _start(config: TrainConfig, agent: Agent) -> tuple[Float32[np.ndarray, " params"], Moments | None]:
    """Parameters and observation statistics to start from; ValueError if a file's are of another network."""
    if config.init_from is None:
        return agent.policy.initial_params(stream(config.seed, Purpose.INITIAL_PARAMS)), None
    if is_legacy(Path(config.init_from)):
        return legacy_weights(Path(config.init_from), agent.policy), None
    saved = load_policy(Path(config.init_from), config.trusted_modules)
    found = Agent(saved.policy, saved.action_head)
    if found != agent:
        raise ValueError(f"init_from {config.init_from} holds {found}, but these options make {agent}")
    moments = moments_of(saved.buffers)
    if (moments is not None) != config.observation_normalization:
        raise ValueError(
            f"init_from {config.init_from} was trained {'with' if moments else 'without'} observation_normalization, "
            f"which is {'on' if config.observation_normalization else 'off'} here"
        )
    return saved.weights, moments


def execute_all(runs: Sequence[Run]) -> None:
    """Executes one run after the other and compares them; if one is stopped, the last line says how to go on."""
    top = runs[0].folder if len(runs) == 1 else runs[0].folder.parent
    try:
        tested = [(run.folder.name, execute(run)) for run in runs]
    except BaseException:
        print(f"to go on        {resume_command(top, runs[0].config.trusted_modules)}", flush=True)
        raise
    names = [name for name, returns in tested if returns is not None]
    if len(names) > 1:
        print(runs_table(names, [returns for _, returns in tested if returns is not None], runs[0].config.seed))


def execute(run: Run) -> Float64[np.ndarray, " episodes"] | None:
    """Trains, draws the learning curve, tests `best.dat` and says where everything is; the test's returns, if any.

    However the training is stopped, what was finished is saved.
    """
    try:
        _train(run)
    finally:
        run.engine.close()
        os.close(run.lock)
        _draw(run.folder)
    return _test_best(run) if run.config.test_episodes else None


def _train(run: Run) -> None:
    config = run.config
    with (
        Console(
            config.generations, max_env_steps=config.max_env_steps, print_every=config.print_every, stream=sys.stdout
        ) as console,
        MetricsWriter(run.folder / METRICS_CSV, run.progress.generation) as metrics,
    ):
        num_params = run.task.agent.policy.layout.num_params
        console.message(f"{config.environment} on {run.task.environment.backend}, {num_params:,} parameters")
        if run.progress.generation:
            console.message(f"resumed after generation {run.progress.generation}")
        Trainer(run, console).run(metrics)


def _draw(folder: Path) -> None:
    """Draws the learning curve if a generation was finished, and says where everything is."""
    metrics, curve = folder / METRICS_CSV, folder / "learning_curve.png"
    if not (metrics.exists() and metrics.stat().st_size):
        return
    try:
        plot_learning_curve(metrics, curve)
    except OSError as error:
        print(f"no learning curve: {error.strerror}", file=sys.stderr)
    for weights in sorted(folder.glob("*.dat")):
        print(f"weights         {weights}")
    print(f"log             {metrics}")
    print(f"learning curve  {curve}", flush=True)


def _test_best(run: Run) -> Float64[np.ndarray, " episodes"]:
    """Plays `best.dat` on Gymnasium's own environment."""
    config = run.config
    saved = load_policy(run.folder / "best.dat", config.trusted_modules)
    environment = environment_for(saved.environment)
    returns = play(
        saved,
        environment,
        episodes=config.test_episodes,
        seed=config.seed,
        threads=config.threads,
        max_episode_steps=evaluation_cap(config),
    )
    print(f"best policy     {summarise(returns, config.seed)} on {environment.backend}")
    return returns
