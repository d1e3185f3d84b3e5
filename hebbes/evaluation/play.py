"""Evaluation of a saved policy: episodes on fresh start states, shown or filmed where asked."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
from jaxtyping import Float64, Int, Shaped, UInt8

from hebbes.contracts.engine import Context
from hebbes.contracts.environment import EnvStep
from hebbes.contracts.randomness import Purpose, simulator_seed, stream
from hebbes.environments.ids import is_in_gymnasium, register
from hebbes.environments.spec import EnvironmentSpec, choose_backend, make_batch_env
from hebbes.execution.chunks import Task, summed
from hebbes.execution.engines import make_engine
from hebbes.execution.episode import Agent, EpisodeResult, run_episode
from hebbes.execution.repeated_population import RepeatedPopulation
from hebbes.files.policy_file import SavedPolicy
from hebbes.wrappers.base import BatchWrapper

ShowFrame: TypeAlias = Callable[[UInt8[np.ndarray, "height width 3"]], None]
"""Takes each frame of an episode as it is drawn."""


@dataclass(frozen=True)
class Played:
    """What the episodes of one policy brought."""

    returns: Float64[np.ndarray, "seeds episodes"]
    """NaN for an episode that failed."""
    faults: Mapping[str, int]
    """Why episodes failed, and how many for each reason."""


def environment_for(
    spec: EnvironmentSpec, *, backend: str | None = None, training_wrappers: bool = False
) -> EnvironmentSpec:
    """A policy's environment for evaluation.

    The back end is Gymnasium's own unless another is asked for or Gymnasium lacks the environment.
    """
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
    episode_timeout: float | None = None,
) -> Float64[np.ndarray, " episodes"]:
    """The return of each episode, the mean over the environment's bodies. NaN for an episode that failed in one.

    Episode k depends on the seed and k alone.
    """
    played = play_seeds(
        saved,
        environment,
        episodes=episodes,
        seeds=(seed,),
        threads=threads,
        max_episode_steps=max_episode_steps,
        episode_timeout=episode_timeout,
    )
    return played.returns[0]


def play_seeds(
    saved: SavedPolicy,
    environment: EnvironmentSpec,
    *,
    episodes: int,
    seeds: Sequence[int],
    threads: int,
    max_episode_steps: int | None = None,
    episode_timeout: float | None = None,
) -> Played:
    """Plays as many episodes for each seed, each in every body of the environment, of which the mean return counts.

    The policy, its observation statistics too, stays as it is.
    """
    context = Context(
        purpose=Purpose.TEST,
        generation=0,
        episodes=(0,),
        independent_seeds=True,
        max_episode_steps=max_episode_steps,
        buffers=saved.buffers,
        observe=False,
    )
    agent, population = Agent(saved.policy, saved.action_head), RepeatedPopulation(saved.weights, episodes)
    rollouts = []
    for seed in seeds:
        task = Task(agent, environment, seed)
        engine = make_engine(task, chunk_size=None, threads=threads, episode_timeout=episode_timeout)
        try:
            rollouts.append(engine.evaluate(population, context))
        finally:
            engine.close()
    return Played(np.stack([each.fitness for each in rollouts]), summed(each.faults for each in rollouts))


def play_one(
    saved: SavedPolicy,
    environment: EnvironmentSpec,
    *,
    episode: int,
    seed: int,
    max_episode_steps: int | None = None,
    render_mode: str | None = None,
    show_frame: ShowFrame | None = None,
) -> EpisodeResult:
    """Plays the episode of `play` with this number in this process, in the first body.

    `show_frame` takes the frames of the render mode "rgb_array".
    """
    seeds, rngs = [simulator_seed(seed, Purpose.TEST, member=episode)], [stream(seed, Purpose.TEST, member=episode)]
    env = make_batch_env(environment, seeds, threads=1, training=False, render_mode=render_mode)
    try:
        return run_episode(
            Agent(saved.policy, saved.action_head),
            env if show_frame is None else _Filmed(env, show_frame),
            saved.weights[np.newaxis],
            0,
            rngs,
            buffers=saved.buffers,
            max_env_steps=max_episode_steps,
        )
    finally:
        env.close()


def watch(
    saved: SavedPolicy,
    environment: EnvironmentSpec,
    *,
    episode: int,
    seed: int,
    max_episode_steps: int | None = None,
    show_frame: ShowFrame | None = None,
) -> EpisodeResult:
    """Plays the episode of `play` with this number in the first body, on the screen, or frame by frame to `show_frame`."""
    return play_one(
        saved,
        environment,
        episode=episode,
        seed=seed,
        max_episode_steps=max_episode_steps,
        render_mode="human" if show_frame is None else "rgb_array",
        show_frame=show_frame,
    )


def watch_all(
    saved: SavedPolicy, environment: EnvironmentSpec, *, episodes: int, seed: int, max_episode_steps: int | None
) -> Played:
    """Shows the episodes of `play` on the screen, one after another."""
    watched = [
        watch(saved, environment, episode=k, seed=seed, max_episode_steps=max_episode_steps) for k in range(episodes)
    ]
    return Played(np.array([[each.returns[0] for each in watched]]), summed(each.faults for each in watched))


class _Filmed(BatchWrapper):
    """A batch of one copy whose every frame is handed on."""

    def __init__(self, env: Any, show_frame: ShowFrame):
        super().__init__(env)
        self._show_frame = show_frame

    def start(self, episode: int) -> Shaped[np.ndarray, "copies ..."]:
        observations = super().start(episode)
        self._show_frame(self.render())
        return observations

    def step(self, actions: Shaped[np.ndarray, "active ..."], active: Int[np.ndarray, " active"]) -> EnvStep:
        stepped = super().step(actions, active)
        self._show_frame(self.render())
        return stepped
