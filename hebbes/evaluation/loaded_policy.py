"""LoadedPolicy: a policy file as an object that acts, for a user's own loops."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from jaxtyping import Float32, Shaped
from numpy.typing import ArrayLike

from hebbes.contracts.environment import MAX_FLOAT32
from hebbes.contracts.errors import convert_foreign_exits
from hebbes.contracts.option import check_argument
from hebbes.contracts.policy import Buffers, Policy, State
from hebbes.evaluation.arguments import check_imports, name_file_in_errors
from hebbes.evaluation.entries import load_in_environment
from hebbes.evaluation.episode_cap import choose_episode_cap
from hebbes.evaluation.evaluation_env import EvaluationEnv
from hebbes.evaluation.play import make_episode_rng, make_evaluation_spec
from hebbes.files.policy_file import SavedPolicy, check_fits
from hebbes.files.weight_file import as_path
from hebbes.policies.action_heads import HEADS

Action: TypeAlias = Shaped[np.ndarray, "..."] | int
"""An int for discrete actions that start at 0, otherwise an array for the outermost wrapper."""


def load_policy(path: str | Path, *, imports: Sequence[str] = ()) -> "LoadedPolicy":
    """The policy in a file that the toolkit wrote. Loading runs no code that the file contains or chooses.

    Args:
        path: the policy file, such as `best.dat` of a run, or "zoo:NAME" for a released one.
        imports: packages of your own that the file may name, for example for its environment. They are imported.

    Raises:
        ValueError: the file is missing, damaged or newer, or it names code that is unknown or not in `imports`.
        TypeError: the path is neither a str nor a Path.

    Examples:
        >>> import hebbes
        >>> policy = hebbes.load_policy("cartpole.dat")
        >>> policy
        <LoadedPolicy linear for CartPole-v1, 8 parameters>
        >>> policy.act([0.0, 0.1, 0.02, 0.3])
        1
        >>> hebbes.load_policy("zoo:HalfCheetah-v5")
        <LoadedPolicy linear for HalfCheetah-v5, 102 parameters>
    """
    allowed, path = check_imports(imports), as_path(path)
    with name_file_in_errors(path), convert_foreign_exits():
        return LoadedPolicy(path, load_in_environment(path, None, allowed)[0])


class LoadedPolicy:
    """A policy with its weights and its environment.

    `act` is for policies without a state in an episode. `start` is for every policy, plastic and recurrent ones too.

    Examples:
        >>> import hebbes
        >>> policy = hebbes.load_policy("cartpole.dat")
        >>> env = policy.make_env(seed=0)
        >>> observation, info = env.reset()
        >>> session, episode_return, done = policy.start(seed=0, episode=info["episode"]), 0.0, False
        >>> while not done:
        ...     observation, reward, terminated, truncated, info = env.step(session.act(observation))
        ...     session.reward(reward)
        ...     episode_return, done = episode_return + reward, terminated or truncated
        >>> episode_return == hebbes.evaluate("cartpole.dat", episodes=1, seed=0, threads=1).mean
        True
    """

    def __init__(self, path: Path, saved: SavedPolicy) -> None:
        self._path, self._saved = path, saved

    def __repr__(self) -> str:
        return f"<LoadedPolicy {self._saved.policy_name} for {self.environment}, {self.num_params} parameters>"

    @property
    def policy(self) -> Policy:
        """The network, without its weights."""
        return self._saved.policy

    @property
    def environment(self) -> str:
        """The id of the environment."""
        return self._saved.environment.environment

    @property
    def num_params(self) -> int:
        """Number of parameters that were searched."""
        return len(self._saved.weights)

    @property
    def weights(self) -> Float32[np.ndarray, " params"]:
        """The parameters, in a new array."""
        return self._saved.weights.copy()

    @property
    def buffers(self) -> Buffers:
        """Constants of the policy that were not searched, such as observation statistics, in new arrays."""
        return {name: array.copy() for name, array in self._saved.buffers.items()}

    @property
    def action_head(self) -> str:
        """What turns the network's outputs into an action: argmax, identity, tanh or tanh_sigmoid."""
        return self._saved.action_head

    @property
    def provenance(self) -> Mapping[str, Any]:
        """Where the weights come from, as the file has it: score, generation, seed, commit and more."""
        return dict(self._saved.provenance)

    @property
    def score(self) -> float | None:
        """The mean return in the training run's evaluation; None if the file has none."""
        return self._saved.provenance.get("score")

    def act(self, observation: ArrayLike) -> Action:
        """The action of a policy without a state, for one observation of the wrapped environment.

        It is an int for discrete actions that start at 0. Otherwise it is an array, for the outermost wrapper:
        `make_env` takes it, and its wrappers clip, rescale or choose.

        Raises TypeError for a policy with a state.
        """
        if self._first_session.has_state:
            raise TypeError(f"policy {self._saved.policy_name!r} has a state in each episode: use start().act()")
        return self._first_session.act(observation)

    @cached_property
    def _first_session(self) -> "Session":
        return self.start()

    def start(self, seed: int = 0, *, episode: int = 0) -> "Session":
        """The policy at the start of an episode of the evaluation with this seed.

        The seed and the number of the episode matter only for policies that draw something at its start, such as the
        initial weights of a plastic network.
        """
        seed = check_argument("seed", seed, int, range=">= 0")
        episode = check_argument("episode", episode, int, range=">= 0")
        return Session(self._saved, seed, episode)

    def make_env(self, seed: int = 0, *, render_mode: str | None = None) -> EvaluationEnv:
        """The policy's environment with its wrappers, except for those that are only for training.

        Its k-th reset begins episode k of the evaluation with this seed (k = 0, 1, ...). If the environment has no
        limit of its own on the env steps of an episode, that of training episodes truncates these too. It is on the
        Gymnasium back end, and on EnvPool only if Gymnasium does not have it.

        Raises ValueError if it cannot be made, or if the policy does not fit it.
        """
        seed = check_argument("seed", seed, int, range=">= 0")
        with name_file_in_errors(self._path), convert_foreign_exits():
            spec = make_evaluation_spec(self._saved.environment)
            cap = choose_episode_cap(self._saved, spec, None)
            env = EvaluationEnv(spec, seed=seed, max_episode_steps=cap, render_mode=render_mode)
            try:
                check_fits(self._path, self._saved, env.observation_space, env.action_space)
            except BaseException:
                env.close()
                raise
            return env


class Session:
    """A policy within one episode: `act` on each observation, and `reward` after each env step.

    Examples:
        >>> import hebbes
        >>> session = hebbes.load_policy("cartpole.dat").start(seed=0, episode=3)
        >>> session.act([0.0, 0.1, 0.02, 0.3])
        1
        >>> session.reward(1.0)
        >>> session.act([0.0, 0.3, -0.02, -0.4])
        0
    """

    def __init__(self, saved: SavedPolicy, seed: int, episode: int) -> None:
        self._saved = saved
        self._weights, self._reward = saved.weights[np.newaxis].copy(), 0.0
        rngs = [make_episode_rng(seed, episode)]
        # Of its own copy of the weights: the state may be a view of them, and is updated in place.
        self._state: State = saved.policy.initial_state(self._weights.copy(), rngs, saved.buffers)

    @property
    def has_state(self) -> bool:
        """Whether something changes from one env step to the next, such as plastic weights or a recurrent memory."""
        return self._state is not None

    def act(self, observation: ArrayLike) -> Action:
        """The action for the next observation of the episode, as `LoadedPolicy.act` gives it.

        Raises ValueError for an observation of another shape, and if the network's outputs are not finite.
        """
        policy, array = self._saved.policy, np.asarray(observation)
        if array.shape != policy.observation_shape:
            wanted = f"shape {policy.observation_shape}, as make_env has it"
            raise ValueError(f"observation must have {wanted}, got {array.shape}")
        if array.dtype.kind not in "biuf":
            raise ValueError(f"observation must be an array of real numbers, got {array.dtype}")
        if array.dtype == np.uint8 and any(each.name == "scale" for each in self._saved.environment.wrappers):
            raise ValueError("observation must have numbers from 0 to 1, as make_env has it, got bytes")
        reward, self._reward = np.array([self._reward], np.float32), 0.0
        outputs = policy.act(self._weights, array[np.newaxis], reward, self._state, self._saved.buffers)
        if not np.isfinite(outputs).all():
            raise ValueError(
                "the policy's outputs are not finite: an observation, a reward or a weight is NaN or too large"
            )
        action = HEADS[self._saved.action_head](outputs)[0]
        return int(action) if np.ndim(action) == 0 else action

    def reward(self, reward: float) -> None:
        """Tells the policy the reward of the latest env step, from which some plastic policies learn.

        It counts as 0 if it is not told. The rewards of several env steps without an action between them are summed.
        """
        array = np.asarray(reward)
        if array.shape or array.dtype.kind not in "biuf" or abs(float(array)) > MAX_FLOAT32:
            raise ValueError(f"reward must be a number that float32 can hold, got {reward!r}")
        if abs(self._reward + float(array)) > MAX_FLOAT32:
            raise ValueError(f"reward must keep the sum since the last action within float32, got {reward!r}")
        self._reward += float(array)
