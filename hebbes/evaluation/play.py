"""Plays episodes of a saved policy on fresh start states, and shows or films them if asked to."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
from jaxtyping import Float64, Int, Shaped, UInt8

from hebbes.contracts.engine import Context
from hebbes.contracts.environment import BatchEnv, EnvStep
from hebbes.contracts.randomness import Purpose, derive_simulator_seed, make_generator
from hebbes.environments.environment_spec import EnvironmentSpec
from hebbes.environments.ids import is_in_gymnasium, register
from hebbes.environments.make_batch_env import choose_backend, make_batch_env
from hebbes.execution.chunks import Task, sum_entries
from hebbes.execution.engines import make_engine
from hebbes.execution.episode import Agent, EpisodeResult, run_episode
from hebbes.execution.repeated_population import RepeatedPopulation
from hebbes.files.policy_file import SavedPolicy
from hebbes.wrappers.base import BatchWrapper

ShowFrame: TypeAlias = Callable[[UInt8[np.ndarray, "height width 3"]], None]
"""A function that takes each frame of an episode as soon as it is rendered."""


@dataclass(frozen=True)
class PlayResult:
    """The returns of one policy's episodes, and why some failed."""

    returns: Float64[np.ndarray, "seeds episodes"]
    """NaN for an episode that failed."""
    faults: Mapping[str, int]
    """The number of failed episodes for each reason."""
    env_steps: Int[np.ndarray, "seeds episodes"]
    """Env steps of each episode, summed over the environment's morphologies."""


def make_evaluation_spec(
    spec: EnvironmentSpec, *, backend: str | None = None, training_wrappers: bool = False
) -> EnvironmentSpec:
    """The environment of a policy, changed for its evaluation.

    Its back end is Gymnasium, unless `backend` is given or Gymnasium does not have the environment (then EnvPool).
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
    """The return of each episode, averaged over the environment's morphologies. NaN for an episode that failed in one.

    Episode k depends only on the seed and k.
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
) -> PlayResult:
    """The returns of `episodes` episodes per seed, each averaged over the environment's morphologies.

    The policy and its observation statistics do not change.
    """
    context = Context(
        purpose=Purpose.TEST,
        generation=0,
        episodes=(0,),
        independent_seeds=True,
        max_episode_steps=max_episode_steps,
        buffers=saved.buffers,
        observe_moments=False,
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
    return PlayResult(
        np.stack([each.fitness for each in rollouts]),
        sum_entries(each.faults for each in rollouts),
        np.stack([each.env_steps.sum(axis=1) for each in rollouts]),
    )


def make_episode_env(
    environment: EnvironmentSpec, *, episode: int, seed: int, render_mode: str | None = None
) -> BatchEnv:
    """One sub-environment, on the first morphology, whose `start(0)` begins episode number `episode` of `play`."""
    seeds = [derive_simulator_seed(seed, Purpose.TEST, member=episode)]
    return make_batch_env(environment, seeds, threads=1, training=False, render_mode=render_mode)


def make_episode_rng(seed: int, episode: int) -> np.random.Generator:
    """The generator for the policy's initial state in episode number `episode` of `play`."""
    return make_generator(seed, Purpose.TEST, member=episode)


def play_episode(
    saved: SavedPolicy,
    environment: EnvironmentSpec,
    *,
    episode: int,
    seed: int,
    max_episode_steps: int | None = None,
    render_mode: str | None = None,
    show_frame: ShowFrame | None = None,
) -> EpisodeResult:
    """Plays episode number `episode` of `play` in this process, with the first morphology.

    `show_frame` gets the frames of the render mode "rgb_array".
    """
    env = make_episode_env(environment, episode=episode, seed=seed, render_mode=render_mode)
    try:
        return run_episode(
            Agent(saved.policy, saved.action_head),
            env if show_frame is None else _FilmedEnv(env, show_frame),
            saved.weights[np.newaxis],
            0,
            [make_episode_rng(seed, episode)],
            buffers=saved.buffers,
            max_env_steps=max_episode_steps,
        )
    finally:
        env.close()


def watch_episode(
    saved: SavedPolicy,
    environment: EnvironmentSpec,
    *,
    episode: int,
    seed: int,
    max_episode_steps: int | None = None,
    show_frame: ShowFrame | None = None,
) -> EpisodeResult:
    """Plays episode number `episode` of `play` with the first morphology, on the screen or for `show_frame`."""
    return play_episode(
        saved,
        environment,
        episode=episode,
        seed=seed,
        max_episode_steps=max_episode_steps,
        render_mode="human" if show_frame is None else "rgb_array",
        show_frame=show_frame,
    )


def watch_episodes(
    saved: SavedPolicy, environment: EnvironmentSpec, *, episodes: int, seed: int, max_episode_steps: int | None
) -> PlayResult:
    """Shows the episodes of `play` on the screen, one after another."""
    watched = [
        watch_episode(saved, environment, episode=k, seed=seed, max_episode_steps=max_episode_steps)
        for k in range(episodes)
    ]
    return PlayResult(
        np.array([[each.returns[0] for each in watched]]),
        sum_entries(each.faults for each in watched),
        np.array([[each.env_steps[0] for each in watched]]),
    )


class _FilmedEnv(BatchWrapper):
    """A batch of one sub-environment that passes every frame to `show_frame`."""

    def __init__(self, env: Any, show_frame: ShowFrame):
        super().__init__(env)
        self._show_frame = show_frame

    def start(self, episode: int) -> Shaped[np.ndarray, "envs ..."]:
        observations = super().start(episode)
        self._show_frame(self.render())
        return observations

    def step(self, actions: Shaped[np.ndarray, "active ..."], active: Int[np.ndarray, " active"]) -> EnvStep:
        stepped = super().step(actions, active)
        self._show_frame(self.render())
        return stepped
