"""Interventions in the episodes of a plastic network, which show what its learning contributes.

Each is a policy around a `Hebbian` network. It draws from the episode's own generator after the initial weights, so
that every episode begins with the weights of the intact network.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from jaxtyping import Float32, Shaped

from hebbes.contracts.option import check_argument
from hebbes.contracts.policy import Buffers, Layout, Policy, State, Weights
from hebbes.policies.hebbian import Hebbian
from hebbes.policies.initial_weights import COEVOLVE, INITIAL_WEIGHTS

RESET = {"weights", "divisors", "traces", "windows", "window_counts"}
"""Entries of the state that begin anew with new weights. Each is a list of arrays, members first."""


@dataclass(frozen=True)
class IntervenedPolicy:
    """Acts as `policy` does, except for what a subclass changes."""

    policy: Hebbian

    @property
    def observation_shape(self) -> tuple[int, ...]:
        """Shape of one member's observation."""
        return self.policy.observation_shape

    @property
    def num_outputs(self) -> int:
        """Length of one member's outputs."""
        return self.policy.num_outputs

    @property
    def layout(self) -> Layout:
        """Names and shapes of the searched parameters."""
        return self.policy.layout

    def initial_params(self, rng: np.random.Generator) -> Float32[np.ndarray, " params"]:
        """The initial parameters of the intact network."""
        return self.policy.initial_params(rng)

    def initial_state(self, weights: Weights, rngs: Sequence[np.random.Generator], buffers: Buffers) -> State:
        """The initial state of the intact network."""
        return self.policy.initial_state(weights, rngs, buffers)

    def estimate_state_bytes(self, *, low_rank: bool) -> int:
        """Bytes of what `initial_state` makes for one member."""
        return self.policy.estimate_state_bytes(low_rank=low_rank)

    def check_buffers(self, buffers: Buffers) -> None:
        """Raises ValueError for buffers that the intact network refuses."""
        self.policy.check_buffers(buffers)

    def act(
        self,
        weights: Weights,
        observations: Shaped[np.ndarray, "members ..."],
        previous_rewards: Float32[np.ndarray, " members"],
        state: State,
        buffers: Buffers,
    ) -> Float32[np.ndarray, "members outputs"]:
        """The network's outputs, between `intervene` and `watch`."""
        self.intervene(state)
        outputs = self.policy.act(weights, observations, previous_rewards, state, buffers)
        self.watch(state)
        return outputs

    def intervene(self, state: State) -> None:
        """Changes the state. Its `env_steps` count the env steps before this one."""

    def watch(self, state: State) -> None:
        """Looks at the state in which the network has acted."""


@dataclass(frozen=True)
class FrozenPolicy(IntervenedPolicy):
    """Stops learning at an env step. With 0 or 1, the initial weights act in the whole episode."""

    at: int
    """First env step before which the network does not learn, >= 0."""

    def __post_init__(self) -> None:
        check_argument("freeze_at", self.at, int, range=">= 0")

    def intervene(self, state: State) -> None:
        """Ends learning for the members that have reached the env step."""
        state["learning"] = state["env_steps"] < self.at


@dataclass(frozen=True)
class ResetPolicy(IntervenedPolicy):
    """Draws new weights (or restores the searched initial ones) before one env step, and goes on learning."""

    at: int
    """The env step, >= 0."""

    def __post_init__(self) -> None:
        check_argument("reset_weights_at", self.at, int, range=">= 0")

    def estimate_state_bytes(self, *, low_rank: bool) -> int:
        """Bytes of what `initial_state` makes for one member: the state of the intact network twice."""
        return 2 * super().estimate_state_bytes(low_rank=low_rank)

    def initial_state(self, weights: Weights, rngs: Sequence[np.random.Generator], buffers: Buffers) -> State:
        """The initial state of the intact network, and the weights for the reset."""
        state = super().initial_state(weights, rngs, buffers)
        return state | {"to_come": super().initial_state(weights, rngs, buffers)}

    def intervene(self, state: State) -> None:
        """Gives the members that have reached the env step their new weights. They do not learn in that env step."""
        now = state["env_steps"] == self.at
        state["learning"] = ~now
        if now.any():
            for name in RESET & state.keys():
                for array, fresh in zip(state[name], state["to_come"][name], strict=True):
                    array[now] = fresh[now]


@dataclass(frozen=True)
class LesionedPolicy(IntervenedPolicy):
    """Silences neurons, drawn for every episode: their activity is 0 in the forward pass and for learning.

    The rule still changes their synapses (with an activity of 0), and normalization includes them.
    """

    fraction: float
    """Fraction of each hidden plastic layer, in [0, 1]. One above 0 that silences no neuron raises ValueError."""

    def __post_init__(self) -> None:
        check_argument("lesion", self.fraction, float, range="in [0, 1]")
        if self.fraction and not any(self.num_silent):
            sizes = ", ".join(map(str, self.policy.hidden_sizes)) or "none"
            raise ValueError(f"lesion: got {self.fraction:g}, which silences no neuron; hidden layers: {sizes}")

    @property
    def num_silent(self) -> tuple[int, ...]:
        """Number of silent neurons of each hidden plastic layer: the fraction of its size, rounded half to even."""
        return tuple(round(self.fraction * size) for size in self.policy.hidden_sizes)

    def initial_state(self, weights: Weights, rngs: Sequence[np.random.Generator], buffers: Buffers) -> State:
        """The initial state of the intact network, and the silent neurons."""
        state = super().initial_state(weights, rngs, buffers)
        sizes = self.policy.hidden_sizes
        silent = [np.zeros((len(weights), size), np.bool_) for size in sizes]
        for member, rng in enumerate(rngs):
            for layer, size, count in zip(silent, sizes, self.num_silent, strict=True):
                layer[member, rng.choice(size, count, replace=False)] = True
        return state | {"silent": silent}


def replace_initial_weights(policy: Hebbian, kind: str) -> Hebbian:
    """The network with another kind of initial weights. Raises ValueError if either kind is searched."""
    if COEVOLVE in (policy.init_weights, kind):
        raise ValueError(
            f"init_weights cannot change from {policy.init_weights} to {kind}: searched initial weights are part of "
            "the policy file"
        )
    return replace(policy, init_weights=check_argument("init_weights", kind, str, choices=tuple(INITIAL_WEIGHTS)))


INTERVENTIONS: Mapping[str, Callable[[Hebbian, Any], Policy]] = {
    "freeze_at": FrozenPolicy,
    "reset_weights_at": ResetPolicy,
    "lesion": LesionedPolicy,
    "init_weights": replace_initial_weights,
}
"""Name of an intervention -> what makes the policy of its value; ValueError if it cannot have the value."""


def intervene(policy: Policy, name: str, value: Any, max_episode_steps: int | None = None) -> Policy:
    """The policy with an intervention of `INTERVENTIONS`.

    ValueError if it is not plastic, if the intervention cannot have the value, or if no episode reaches its env step.
    """
    if not isinstance(policy, Hebbian):
        raise ValueError(f"{name} is for hebbian policies, and this is {type(policy).__name__}")
    intervened = INTERVENTIONS[name](policy, value)
    if max_episode_steps is not None and getattr(intervened, "at", -1) >= max_episode_steps:
        raise ValueError(f"{name} must be < max_episode_steps {max_episode_steps}, got {value}")
    return intervened
