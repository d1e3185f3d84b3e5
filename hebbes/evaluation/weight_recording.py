"""Recording of a plastic network's weights in the first episodes of an evaluation."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import prod

import numpy as np
from jaxtyping import Float32, Float64, Int

from hebbes.contracts.policy import State
from hebbes.contracts.randomness import Purpose, make_generator
from hebbes.environments.environment_spec import EnvironmentSpec
from hebbes.evaluation.episode_cap import choose_episode_cap
from hebbes.evaluation.interventions import IntervenedPolicy
from hebbes.evaluation.play import play_episode
from hebbes.files.policy_file import SavedPolicy
from hebbes.policies.hebbian import Hebbian, compute_synaptic_weights

NUM_DRAWN_SYNAPSES = 500
"""Number of synapses per layer whose weights are recorded. They are drawn once for all episodes."""

NUM_EPISODES = 5
"""Number of episodes that are recorded. All episodes if fewer are played."""

MAX_EPISODE_STEPS = 2_000
"""Env steps of an episode that are recorded: with NUM_DRAWN_SYNAPSES, 4 MB per layer."""


@dataclass(frozen=True)
class WeightRecording:
    """The weights of a plastic network in one episode."""

    trajectories: Sequence[Float32[np.ndarray, "env_steps _synapses"]]
    """For each layer, the weights of some synapses that acted in each env step."""
    updated_at: Int[np.ndarray, " updates"]
    """The env steps before which the weights were updated."""
    changes: Float64[np.ndarray, "updates layers"]
    """Mean absolute change of all weights of a layer by each update."""


@dataclass(frozen=True)
class _RecordedPolicy(IntervenedPolicy):
    """The intact network of one member, whose weights are recorded."""

    chosen: Sequence[Int[np.ndarray, " _synapses"]]
    """For each layer, the indices of the recorded synapses in its flattened weights."""
    weights: list[list[Float32[np.ndarray, " _synapses"]]] = field(default_factory=list)
    changes: list[list[float]] = field(default_factory=list)
    latest: list[Float32[np.ndarray, " _all"]] = field(default_factory=list)

    def watch(self, state: State) -> None:
        """Records the weights that have acted, and their mean absolute change since the env step before."""
        layers = [layer.ravel() for layer in compute_synaptic_weights(state)]
        if not all(np.isfinite(layer).all() for layer in layers):  # the episode ends at others
            return
        self.weights.append([layer[chosen] for layer, chosen in zip(layers, self.chosen, strict=True)])
        if self.latest:
            pairs = zip(layers, self.latest, strict=True)
            self.changes.append([float(np.abs(new - old).mean()) for new, old in pairs])
        self.latest[:] = layers

    def make_recording(self) -> WeightRecording:
        """The recording as arrays."""
        trajectories = [np.stack(layer) for layer in zip(*self.weights, strict=True)]
        changes = np.array(self.changes).reshape(-1, len(self.chosen))
        updated_at = np.arange(self.policy.update_every, len(self.weights), self.policy.update_every)
        return WeightRecording(trajectories, updated_at, changes[updated_at - 1])


def record_weights(
    saved: SavedPolicy, environment: EnvironmentSpec, *, episodes: int, seed: int, max_episode_steps: int | None
) -> list[WeightRecording]:
    """Recordings of the first `NUM_EPISODES` episodes of `play` with a plastic policy, each up to `MAX_EPISODE_STEPS`.

    Episodes that could not begin are left out.
    """
    policy = saved.policy
    assert isinstance(policy, Hebbian)
    rng = make_generator(0, Purpose.BOOTSTRAP)
    sizes = [prod(shape) for shape in policy.plastic_shapes.values()]
    chosen = [np.sort(rng.choice(size, min(size, NUM_DRAWN_SYNAPSES), replace=False)) for size in sizes]
    cap = min(choose_episode_cap(saved, environment, max_episode_steps) or MAX_EPISODE_STEPS, MAX_EPISODE_STEPS)
    recordings = []
    for episode in range(min(episodes, NUM_EPISODES)):
        recorded = _RecordedPolicy(policy, chosen)
        changed = replace(saved, policy=recorded)
        play_episode(changed, environment, episode=episode, seed=seed, max_episode_steps=cap)
        if recorded.weights:
            recordings.append(recorded.make_recording())
    return recordings
