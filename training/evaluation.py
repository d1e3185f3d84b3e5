"""Evaluation of a saved policy: episodes on fresh start states, their statistics, a video."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float64, Int, Shaped

from contracts.engine import Context
from contracts.environment import EnvStep
from contracts.randomness import Purpose, simulator_seed, stream
from reporting.video import VideoWriter
from rollouts.chunks import Task
from rollouts.engines import make_engine, num_threads
from rollouts.environment_ids import is_in_gymnasium, register, resolve
from rollouts.environments import EnvironmentSpec, choose_backend, make_batch_env
from rollouts.episode import Agent, run_episode
from strategies.populations import RepeatedPopulation
from training.assembly import spaces
from training.config import BACKENDS, option
from training.policy_file import SavedPolicy, check_fits
from training.statistics import Summary, as_json, json_number, summary
from wrappers.base import BatchWrapper

FRAMES_PER_SECOND = 50.0
"""Of videos; near the pace of most simulated bodies."""


@dataclass(frozen=True)
class EvaluateConfig:
    """Options of an evaluation."""

    path_weights: str = option("", "the policy file to evaluate")
    environment: str | None = option(None, "Gymnasium id (default: the one in the file)")
    episodes: int = option(20, "episodes to play")
    seed: int = option(0, "seed of the start states, >= 0; episode k depends on the seed and k alone")
    backend: str | None = option(
        None, "simulator that plays (default: gymnasium; envpool for ids that only EnvPool has)", choices=BACKENDS
    )
    threads: int = option(-1, "threads or worker processes; -1 means all cores")
    max_episode_steps: int | None = option(None, "cap on the env steps of an episode (default: the environment's)")
    training_wrappers: bool = option(False, "apply the wrappers meant for training too, such as early stopping")
    render: bool = option(False, "show the episodes on the screen, one after another")
    video: str | None = option(None, "write a video of the first episode to this .mp4 file")
    json: bool = option(False, "print one JSON object and nothing else")
    imports: tuple[str, ...] = option((), "packages to import first; the file may then name their code", flag="import")

    def __post_init__(self) -> None:
        num_threads(self.threads)
        if not self.path_weights:
            raise ValueError("path_weights must name a policy file")
        for name, least in (("episodes", 1), ("seed", 0), ("max_episode_steps", 1)):
            value = getattr(self, name)
            if value is not None and value < least:
                raise ValueError(f"{name} must be >= {least}, got {value}")


def environment_for(
    spec: EnvironmentSpec,
    *,
    backend: str | None = None,
    training_wrappers: bool = False,
    name: str | None = None,
) -> EnvironmentSpec:
    """A policy's environment, or the one named in the same wrappers, for evaluation.

    The back end is Gymnasium's own unless another is asked for or Gymnasium lacks the environment.
    """
    if name is not None:
        resolved = resolve(name, spec.imports)
        if resolved.environment != spec.environment:
            spec = replace(spec, environment=resolved.environment, env_kwargs=resolved.env_kwargs)
    if backend is None:
        register(spec.environment, spec.imports)
        backend = "gymnasium" if is_in_gymnasium(spec.environment) else "envpool"
    return replace(
        spec,
        backend=choose_backend(backend, spec.environment, spec.env_kwargs, spec.gymnasium_wrappers),
        wrappers=spec.wrappers + (spec.training_wrappers if training_wrappers else ()),
        training_wrappers=(),
    )


def play(
    saved: SavedPolicy,
    environment: EnvironmentSpec,
    *,
    episodes: int,
    seed: int,
    threads: int,
    max_episode_steps: int | None = None,
    render_mode: str | None = None,
) -> Float64[np.ndarray, " episodes"]:
    """The return of each episode; episode k depends on the seed and k alone. NaN for an episode that failed."""
    task = Task(Agent(saved.policy, saved.action_head), environment, seed, render_mode)
    # What is shown on a screen is shown in one window, one episode after another.
    chunk_size, threads, kind = (1, 1, "in_process") if render_mode else (None, threads, "auto")
    engine = make_engine(task, chunk_size=chunk_size, threads=threads, engine=kind)
    context = Context(
        purpose=Purpose.TEST,
        generation=0,
        episodes=(0,),
        independent_seeds=True,
        max_episode_steps=max_episode_steps,
        buffers=saved.buffers,
        observe=False,
    )
    try:
        return engine.evaluate(RepeatedPopulation(saved.weights, episodes), context).returns[:, 0]
    finally:
        engine.close()


def summarise(returns: Float64[np.ndarray, " episodes"], seed: int) -> Summary:
    """Statistics of the returns, with the bootstrap drawn from the evaluation's seed."""
    return summary(returns, stream(seed, Purpose.BOOTSTRAP))


class _Filmed(BatchWrapper):
    """A batch of one copy whose every frame goes to a video."""

    def __init__(self, env: Any, video: VideoWriter):
        super().__init__(env)
        self._video = video

    def start(self, episode: int) -> Shaped[np.ndarray, "copies ..."]:
        observations = super().start(episode)
        self._video.write(self.render())
        return observations

    def step(self, actions: Shaped[np.ndarray, "active ..."], active: Int[np.ndarray, " active"]) -> EnvStep:
        stepped = super().step(actions, active)
        self._video.write(self.render())
        return stepped


def film(
    saved: SavedPolicy, environment: EnvironmentSpec, path: Path, *, seed: int, max_episode_steps: int | None = None
) -> None:
    """Writes a video of the first episode that `play` plays with this seed on Gymnasium's own environment."""
    environment = replace(environment, backend="gymnasium")
    seeds = [simulator_seed(seed, Purpose.TEST, member=0)]
    with VideoWriter(path, FRAMES_PER_SECOND) as video:
        env = make_batch_env(environment, seeds, threads=1, training=False, render_mode="rgb_array")
        try:
            run_episode(
                Agent(saved.policy, saved.action_head),
                _Filmed(env, video),
                saved.weights[np.newaxis],
                0,
                [stream(seed, Purpose.TEST)],
                buffers=saved.buffers,
                max_env_steps=max_episode_steps,
            )
        finally:
            env.close()


def checked_environment(config: EvaluateConfig, saved: SavedPolicy) -> EnvironmentSpec:
    """The environment to evaluate in; ValueError if the policy does not fit it or the video cannot be written."""
    environment = environment_for(
        saved.environment, backend=config.backend, training_wrappers=config.training_wrappers, name=config.environment
    )
    if config.render and environment.backend != "gymnasium":
        raise ValueError("render needs the gymnasium back end; leave --backend out")
    if config.video is not None:
        VideoWriter(Path(config.video), FRAMES_PER_SECOND)
    check_fits(Path(config.path_weights), saved, *spaces(environment))
    return environment


def as_object(config: EvaluateConfig, environment: EnvironmentSpec, returns: np.ndarray) -> Mapping[str, Any]:
    """What `--json` prints."""
    return {
        **as_json(summarise(returns, config.seed)),
        "episodes": config.episodes,
        "returns": [json_number(value) for value in returns],
        "environment": environment.environment,
        "seed": config.seed,
    }
