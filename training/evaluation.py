"""Evaluation of a saved policy: episodes on fresh start states, their statistics, a video."""

import json
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float64, Int, Shaped

from contracts.engine import Context
from contracts.environment import EnvStep
from contracts.randomness import Purpose, simulator_seed, stream
from reporting.video import VideoWriter, check_video_path
from rollouts.chunks import Task
from rollouts.engines import make_engine, num_threads
from rollouts.environment_ids import ResolvedId, is_in_gymnasium, register, resolve
from rollouts.environments import BACKENDS, EnvironmentSpec, choose_backend, make_batch_env
from rollouts.episode import Agent, run_episode
from rollouts.gymnasium_env import has_display
from strategies.populations import RepeatedPopulation
from training.assembly import spaces
from training.config import option
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
        None,
        "simulator that plays (default: gymnasium; envpool for ids that only EnvPool has)",
        choices=("auto", *BACKENDS),
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
    named: ResolvedId | None = None,
) -> EnvironmentSpec:
    """A policy's environment, or the one named in the same wrappers, for evaluation.

    The back end is Gymnasium's own unless another is asked for or Gymnasium lacks the environment.
    """
    if named is not None:
        kept = spec.env_kwargs if named.environment == spec.environment else {}
        spec = replace(spec, environment=named.environment, env_kwargs={**kept, **named.env_kwargs})
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
) -> Float64[np.ndarray, " episodes"]:
    """The return of each episode; episode k depends on the seed and k alone. NaN for an episode that failed."""
    task = Task(Agent(saved.policy, saved.action_head), environment, seed)
    engine = make_engine(task, chunk_size=None, threads=threads)
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


def watch(
    saved: SavedPolicy,
    environment: EnvironmentSpec,
    *,
    episode: int,
    seed: int,
    max_episode_steps: int | None = None,
    video: VideoWriter | None = None,
) -> float:
    """Plays the episode of `play` with this number on the screen, or into a video if given; returns its return."""
    env = make_batch_env(
        environment,
        [simulator_seed(seed, Purpose.TEST, member=episode)],
        threads=1,
        training=False,
        render_mode="human" if video is None else "rgb_array",
    )
    try:
        played = run_episode(
            Agent(saved.policy, saved.action_head),
            env if video is None else _Filmed(env, video),
            saved.weights[np.newaxis],
            0,
            [stream(seed, Purpose.TEST, member=episode)],
            buffers=saved.buffers,
            max_env_steps=max_episode_steps,
        )
        return float(played.returns[0])
    finally:
        env.close()


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


def checked_environment(config: EvaluateConfig, saved: SavedPolicy) -> EnvironmentSpec:
    """The environment to evaluate in; ValueError if the policy does not fit it or the video cannot be written."""
    imports = tuple(dict.fromkeys((*saved.environment.imports, *config.imports)))
    named = resolve(config.environment, imports) if config.environment is not None else None
    if named is not None and named.notice:
        print(named.notice, file=sys.stderr)
    environment = environment_for(
        replace(saved.environment, imports=imports),
        backend=config.backend,
        training_wrappers=config.training_wrappers,
        named=named,
    )
    if config.video is not None:
        check_video_path(Path(config.video))
    for option_name in ("render", "video"):
        if getattr(config, option_name) and environment.backend != "gymnasium":
            raise ValueError(f"{option_name} needs the gymnasium back end, got {environment.backend}")
    if config.render and not has_display():
        raise ValueError("render needs a display, and neither DISPLAY nor WAYLAND_DISPLAY is set; --video needs none")
    check_fits(Path(config.path_weights), saved, *spaces(environment))
    return environment


def played_returns(
    config: EvaluateConfig, saved: SavedPolicy, environment: EnvironmentSpec
) -> Float64[np.ndarray, " episodes"]:
    """The return of each episode, shown on the screen where the config says so."""
    options: dict[str, Any] = {"seed": config.seed, "max_episode_steps": config.max_episode_steps}
    if config.render:
        return np.array([watch(saved, environment, episode=k, **options) for k in range(config.episodes)])
    return play(saved, environment, episodes=config.episodes, threads=config.threads, **options)


def film(config: EvaluateConfig, saved: SavedPolicy, environment: EnvironmentSpec) -> None:
    """Writes the video of the first episode; ends the program with status 1 where that cannot be done."""
    try:
        with VideoWriter(Path(config.video or ""), FRAMES_PER_SECOND) as video:
            options: dict[str, Any] = {"seed": config.seed, "max_episode_steps": config.max_episode_steps}
            watch(saved, environment, episode=0, video=video, **options)
    except (OSError, ValueError, NotImplementedError) as error:
        sys.exit(f"no video: {' '.join(str(error).split()) or type(error).__name__}")


def report(config: EvaluateConfig, environment: EnvironmentSpec, returns: Float64[np.ndarray, " episodes"]) -> str:
    """A line for a person, or the object that `--json` prints."""
    figures = summarise(returns, config.seed)
    if not config.json:
        return f"{environment.environment} on {environment.backend}, seed {config.seed}: {figures}"
    return json.dumps(
        {
            **as_json(figures),
            "episodes": config.episodes,
            "returns": [json_number(value) for value in returns],
            "environment": environment.environment,
            "seed": config.seed,
        }
    )
