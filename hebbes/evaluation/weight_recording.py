"""Recording of what a plastic network's weights do in the first episodes of an evaluation."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from jaxtyping import Float32, Float64, Int, Shaped

from hebbes.contracts.policy import Buffers, State, Weights
from hebbes.contracts.randomness import Purpose, stream
from hebbes.environments.spec import EnvironmentSpec
from hebbes.evaluation.interventions import Intervened
from hebbes.evaluation.play import play_one
from hebbes.files.policy_file import SavedPolicy
from hebbes.policies.hebbian import Hebbian, synaptic_weights

NUM_DRAWN_SYNAPSES = 500
"""Synapses of a layer whose weights are kept, drawn at random, the same ones in every episode."""

MAX_ENV_STEPS = 2_000
"""Env steps of an episode that are recorded; with NUM_DRAWN_SYNAPSES, 4 MB a layer."""


@dataclass(frozen=True)
class WeightRecording:
    """What the weights of a plastic network did in one episode."""

    trajectories: Sequence[Float32[np.ndarray, "env_steps synapses"]]
    """Of some synapses of each layer, the weight that acted in each env step."""
    changes: Float64[np.ndarray, "env_steps layers"]
    """Mean absolute change of all weights of a layer from one env step to the next."""


@dataclass
class _Notes:
    """What was seen of one episode."""

    chosen: Sequence[Int[np.ndarray, " synapses"]]
    """Of each layer, places in its flattened weights."""
    weights: list[list[Float32[np.ndarray, " synapses"]]] = field(default_factory=list)
    changes: list[list[float]] = field(default_factory=list)
    latest: list[Float32[np.ndarray, " all"]] = field(default_factory=list)

    def add(self, layers: list[Float32[np.ndarray, " all"]]) -> None:
        """Notes the weights that act in an env step, and how far all of them are from those before."""
        self.weights.append([layer[chosen] for layer, chosen in zip(layers, self.chosen, strict=True)])
        if self.latest:
            pairs = zip(layers, self.latest, strict=True)
            self.changes.append([float(np.abs(new - old).mean()) for new, old in pairs])
        self.latest = layers

    def life(self) -> WeightRecording:
        """The notes as arrays."""
        trajectories = [np.stack(layer) for layer in zip(*self.weights, strict=True)]
        changes: Float64[np.ndarray, "env_steps layers"] = np.array(self.changes).reshape(-1, len(self.chosen))
        return WeightRecording(trajectories, changes)


@dataclass(frozen=True)
class _Recorded(Intervened):
    """The intact network of one member, with an observer."""

    notes: _Notes

    def act(
        self,
        weights: Weights,
        observations: Shaped[np.ndarray, "members ..."],
        previous_rewards: Float32[np.ndarray, " members"],
        state: State,
        buffers: Buffers,
    ) -> Float32[np.ndarray, "members outputs"]:
        """The network's outputs."""
        outputs = super().act(weights, observations, previous_rewards, state, buffers)
        self.notes.add([layer.ravel() for layer in synaptic_weights(state)])
        return outputs


def record_weights(
    saved: SavedPolicy, policy: Hebbian, environment: EnvironmentSpec, *, episodes: int, seed: int, max_env_steps: int
) -> list[WeightRecording]:
    """The first episodes of `play`, up to a number of env steps; `policy` is that of `saved`.

    An episode that could not begin is left out.
    """
    rng = stream(0, Purpose.BOOTSTRAP)
    sizes = [layer[0].size for layer in synaptic_weights(_first_state(saved, policy))]
    chosen = [np.sort(rng.choice(size, min(size, NUM_DRAWN_SYNAPSES), replace=False)) for size in sizes]
    lives = []
    for episode in range(episodes):
        notes = _Notes(chosen)
        recorded = replace(saved, policy=_Recorded(policy, notes))
        play_one(recorded, environment, episode=episode, seed=seed, max_episode_steps=max_env_steps)
        if notes.weights:
            lives.append(notes.life())
    return lives


def _first_state(saved: SavedPolicy, policy: Hebbian) -> State:
    return policy.initial_state(saved.weights[np.newaxis], [stream(0, Purpose.BOOTSTRAP)], saved.buffers)
