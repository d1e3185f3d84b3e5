"""Plays episodes of a policy on fresh start states: many on an engine, or one here, which can be shown or filmed."""

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np
from jaxtyping import Float32, Int, Shaped, UInt8

from hebbes.contracts.engine import Context, Engine, Rollouts
from hebbes.contracts.environment import BatchEnv, EnvStep
from hebbes.contracts.errors import describe_error
from hebbes.contracts.policy import Buffers
from hebbes.contracts.randomness import Purpose, derive_simulator_seed, make_generator
from hebbes.environments.environment_spec import EnvironmentSpec
from hebbes.environments.ids import is_in_gymnasium, register, resolve
from hebbes.environments.make_batch_env import choose_backend, make_batch_env
from hebbes.evaluation.episode_cap import choose_episode_cap
from hebbes.execution.chunks import Task
from hebbes.execution.engine_options import EngineOptions
from hebbes.execution.engines import make_engine
from hebbes.execution.episode import Agent, EpisodeResult, run_episode
from hebbes.execution.repeated_population import RepeatedPopulation
from hebbes.files.policy_file import SavedPolicy
from hebbes.recording.console import Console
from hebbes.registry.users_classes import convert_policy_errors
from hebbes.wrappers.base import BatchWrapper

ShowFrame: TypeAlias = Callable[[UInt8[np.ndarray, "height width 3"], float], None]
"""A function that takes each frame of an episode as soon as it is rendered, and the return so far."""


def make_evaluation_spec(
    spec: EnvironmentSpec, *, backend: str | None = None, training_wrappers: bool = False
) -> EnvironmentSpec:
    """The environment of a policy, changed for its evaluation.

    Its back end is Gymnasium, unless `backend` is given or Gymnasium does not have the environment (then EnvPool).
    """
    register(spec.environment, spec.imports)
    if backend is None:
        backend = "gymnasium"
        if not is_in_gymnasium(spec.environment):
            resolve(spec.environment, spec.imports)  # ValueError, with what helps, if EnvPool does not have it either
            backend = "envpool"
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
    console: Console | None = None,
) -> Rollouts:
    """The episodes of a policy file, one a member; `fitness` is their returns, averaged over the morphologies.

    Without a cap, an environment without limit has that of the file's training. Episode k depends only on the seed and
    k. The policy and its observation statistics do not change. A console shows how many episodes are done.
    """
    task = Task(Agent(saved.policy, saved.action_head), environment, seed)
    engine = make_engine(task, EngineOptions(threads=threads, episode_timeout=episode_timeout))
    try:
        with (console or Console()).phase("playing", lambda: engine.progress):
            return play_on(
                engine,
                saved.weights,
                saved.buffers,
                purpose=Purpose.TEST,
                episodes=episodes,
                max_episode_steps=choose_episode_cap(saved, environment, max_episode_steps),
            )
    finally:
        engine.close()


def play_on(
    engine: Engine,
    weights: Float32[np.ndarray, " params"],
    buffers: Buffers,
    *,
    purpose: Purpose,
    episodes: int,
    max_episode_steps: int | None,
    number: int = 0,
) -> Rollouts:
    """Episodes of one policy on an engine, one a member, each with a start state of its own.

    Evaluations of another `number` have other start states.
    """
    context = Context(
        purpose=purpose,
        generation=number,
        episodes=(number,),
        members_per_seed=1,
        max_episode_steps=max_episode_steps,
        buffers=buffers,
    )
    return engine.evaluate(RepeatedPopulation(weights, episodes), context)


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

    The render mode "human" shows it on the screen. `show_frame` gets the frames of "rgb_array". ValueError if a user's
    environment, policy or batch wrapper raises.
    """
    with (
        _convert_environment_errors(environment),
        convert_policy_errors(saved.policy, ValueError),
        closing(make_episode_env(environment, episode=episode, seed=seed, render_mode=render_mode)) as env,
    ):
        return run_episode(
            Agent(saved.policy, saved.action_head),
            env if show_frame is None else _FilmedEnv(env, show_frame),
            saved.weights[np.newaxis],
            0,
            [make_episode_rng(seed, episode)],
            buffers=saved.buffers,
            max_episode_steps=choose_episode_cap(saved, environment, max_episode_steps),
        )


@contextmanager
def _convert_environment_errors(environment: EnvironmentSpec) -> Iterator[None]:
    """Turns what a user's environment raises in a reset into a ValueError of one line."""
    try:
        yield
    except (OSError, ValueError):  # the callers print these
        raise
    except Exception as error:
        raise ValueError(f"{environment.environment} cannot be played: {describe_error(error)}") from error


class _FilmedEnv(BatchWrapper):
    """A batch of one sub-environment that passes every frame to `show_frame`."""

    def __init__(self, env: Any, show_frame: ShowFrame):
        super().__init__(env)
        self._show_frame, self._return = show_frame, 0.0

    def start(self, episode: int) -> Shaped[np.ndarray, "envs ..."]:
        observations = super().start(episode)
        self._return = 0.0
        self._show_frame(self.render(), self._return)
        return observations

    def step(self, actions: Shaped[np.ndarray, "active ..."], active: Int[np.ndarray, " active"]) -> EnvStep:
        stepped = super().step(actions, active)
        self._return += float(stepped.rewards[0])
        self._show_frame(self.render(), self._return)
        return stepped
