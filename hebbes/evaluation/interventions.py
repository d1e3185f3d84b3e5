"""Interventions: a plastic network whose life is changed, to see what its learning is good for.

Each is a policy around a `Hebbian` network. What it draws comes from the episode's own generator after the initial
weights, so every life begins with the weights of the intact network.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float32, Shaped

from hebbes.contracts.policy import Buffers, Layout, State, Weights
from hebbes.policies.hebbian import Hebbian
from hebbes.policies.initial_weights import COEVOLVE

SYNAPTIC = {"weights", "divisors", "traces"}
"""Entries of the state that belong to synapses."""


@dataclass(frozen=True)
class Intervened:
    """A network whose life is that of `policy`, but for what a subclass changes."""

    policy: Hebbian

    @property
    def observation_shape(self) -> tuple[int, ...]:
        """Shape of one member's observation."""
        return self.policy.observation_shape

    @property
    def layout(self) -> Layout:
        """Names and shapes of the searched parameters."""
        return self.policy.layout

    def initial_params(self, rng: np.random.Generator) -> Float32[np.ndarray, " params"]:
        """Where the search starts."""
        return self.policy.initial_params(rng)

    def initial_state(self, weights: Weights, rngs: Sequence[np.random.Generator], buffers: Buffers) -> State:
        """That of the intact network."""
        return self.policy.initial_state(weights, rngs, buffers)

    def check_buffers(self, buffers: Buffers) -> None:
        """ValueError for buffers that the intact network refuses."""
        self.policy.check_buffers(buffers)

    def act(
        self,
        weights: Weights,
        observations: Shaped[np.ndarray, "members ..."],
        previous_rewards: Float32[np.ndarray, " members"],
        state: State,
        buffers: Buffers,
    ) -> Float32[np.ndarray, "members outputs"]:
        """The network's outputs in a state that `change` has had before."""
        self.change(state)
        return self.policy.act(weights, observations, previous_rewards, state, buffers)

    def change(self, state: State) -> None:
        """Intervenes in the state, whose `env_steps` count the env steps before this one."""


@dataclass(frozen=True)
class Frozen(Intervened):
    """Learns no more from an env step on: those of 0 and 1 act as they were born."""

    at: int
    """In env steps, >= 0: the first one before which nothing is learned."""

    def change(self, state: State) -> None:
        """Ends the learning of the members whose time has come."""
        state["learning"] = state["env_steps"] < self.at


@dataclass(frozen=True)
class Reset(Intervened):
    """Acts in one env step with weights drawn anew, or with the searched ones it had at first, and learns on."""

    at: int
    """In env steps, >= 0."""

    def initial_state(self, weights: Weights, rngs: Sequence[np.random.Generator], buffers: Buffers) -> State:
        """That of the intact network, and the weights to come."""
        state = super().initial_state(weights, rngs, buffers)
        return state | {"to_come": super().initial_state(weights, rngs, buffers)}

    def change(self, state: State) -> None:
        """Gives the members whose time has come their new weights, with nothing learned on top."""
        now = state["env_steps"] == self.at
        state["learning"] = ~now
        if now.any():
            for name in SYNAPTIC & state.keys():
                for array, fresh in zip(state[name], state["to_come"][name], strict=True):
                    array[now] = fresh[now]


@dataclass(frozen=True)
class Lesioned(Intervened):
    """Has neurons, drawn for every episode, that are silent: their activity is 0, for forward pass and learning.

    Their synapses still change by what the rule makes of an activity of 0, and count in the normalisation.
    """

    fraction: float
    """Of the neurons of each hidden plastic layer, in [0, 1]; ValueError for one above 0 that silences none."""

    def __post_init__(self) -> None:
        if self.fraction and not any(self.num_silent):
            sizes = ", ".join(map(str, self.policy.hidden_sizes)) or "none"
            raise ValueError(f"lesion: got {self.fraction:g}, which silences no neuron; hidden layers: {sizes}")

    @property
    def num_silent(self) -> tuple[int, ...]:
        """Silent neurons of each hidden plastic layer: the fraction of its size to the nearest, halves to even."""
        return tuple(round(self.fraction * size) for size in self.policy.hidden_sizes)

    def initial_state(self, weights: Weights, rngs: Sequence[np.random.Generator], buffers: Buffers) -> State:
        """That of the intact network, with its silent neurons."""
        state = super().initial_state(weights, rngs, buffers)
        sizes = self.policy.hidden_sizes
        silent = [np.zeros((len(weights), size), np.bool_) for size in sizes]
        for member, rng in enumerate(rngs):
            for layer, size, count in zip(silent, sizes, self.num_silent, strict=True):
                layer[member, rng.choice(size, count, replace=False)] = True
        return state | {"silent": silent}


def with_initial_weights(policy: Hebbian, kind: str) -> Hebbian:
    """The network whose lives begin with weights of another kind; ValueError where either kind is searched."""
    if COEVOLVE in (policy.init_weights, kind):
        raise ValueError(
            f"init_weights cannot change from {policy.init_weights} to {kind}: searched initial weights are part of "
            "what the file holds"
        )
    return replace(policy, init_weights=kind)
