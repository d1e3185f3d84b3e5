"""One training run: everything is checked and made by `prepare`, then `execute` trains, draws and tests."""

import sys
from dataclasses import replace
from pathlib import Path

from gymnasium import Space
from jaxtyping import Float32
from numpy import ndarray

from contracts.engine import Moments
from contracts.randomness import Purpose, stream
from reporting.console import Console
from reporting.metrics import MetricsWriter
from reporting.plot import plot_learning_curve
from rollouts.chunks import Task
from rollouts.engines import make_engine
from rollouts.environments import EnvironmentSpec
from rollouts.episode import Agent
from rollouts.moments import moments_of
from rollouts.registry import lookup
from training.assembly import environment_spec, make_agent, spaces
from training.config import TrainConfig
from training.evaluation import environment_for, play, summarise
from training.loop import Progress, Run, Trainer, evaluation_cap
from training.policy_file import load_policy
from training.run_folder import make_run_folder

METRICS_CSV = "metrics.csv"


def prepare(config: TrainConfig) -> Run:
    """Checks the options against the environment, then makes the run's folder and its workers.

    Raises ValueError where something does not fit; nothing has been written then.
    """
    environment = environment_spec(config)
    observation_space, action_space = spaces(environment)
    if config.test_episodes:
        _check_test(environment, observation_space, action_space)
    if config.policy == "auto":
        config = replace(config, policy="cnn" if len(observation_space.shape or ()) == 3 else "mlp")
    agent = make_agent(config, observation_space, action_space)
    initial, moments = _start(config, agent)
    strategy = lookup("strategies", config.strategy)(config.settings, initial, config.seed)
    task = Task(agent, environment, config.seed)
    folder = make_run_folder(config)
    engine = make_engine(task, chunk_size=config.chunk_size, threads=config.threads, engine=config.engine)
    return Run(config, task, strategy, engine, folder, Progress(moments=moments))


def _check_test(environment: EnvironmentSpec, *trained_in: Space) -> None:
    """Refuses, before the training, an environment in which the test after it could not be played."""
    reference = environment_for(environment)
    for trained, tested in zip(trained_in, spaces(reference), strict=True):
        if (type(trained), trained.shape) != (type(tested), tested.shape):
            raise ValueError(
                f"environment {environment.environment!r} has {trained} on {environment.backend}, "
                f"but {tested} on {reference.backend}; train with --backend {reference.backend}"
            )


def _start(config: TrainConfig, agent: Agent) -> tuple[Float32[ndarray, " params"], Moments | None]:
    """Parameters and observation statistics to start from; ValueError if a file's are of another network."""
    if config.init_from is None:
        return agent.policy.initial_params(stream(config.seed, Purpose.INITIAL_PARAMS)), None
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


def execute(run: Run) -> None:
    """Trains, draws the learning curve, tests `best.dat` and says where everything is."""
    try:
        _train(run)
    finally:
        run.engine.close()
        _draw(run.folder)
    if run.config.test_episodes:
        _test_best(run)


def _train(run: Run) -> None:
    config = run.config
    with (
        Console(
            config.generations, max_env_steps=config.max_env_steps, print_every=config.print_every, stream=sys.stdout
        ) as console,
        MetricsWriter(run.folder / METRICS_CSV) as metrics,
    ):
        num_params = run.task.agent.policy.layout.num_params
        console.message(f"{config.environment} on {run.task.environment.backend}, {num_params:,} parameters")
        Trainer(run).run(console, metrics)


def _draw(folder: Path) -> None:
    """Draws the learning curve if a generation was finished, and says where everything is."""
    metrics, curve = folder / METRICS_CSV, folder / "learning_curve.png"
    if metrics.exists() and metrics.stat().st_size:
        plot_learning_curve(metrics, curve)
        for weights in sorted(folder.glob("*.dat")):
            print(f"weights         {weights}")
        print(f"log             {metrics}")
        print(f"learning curve  {curve}", flush=True)


def _test_best(run: Run) -> None:
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
