"""Hebbian network: its dense layers learn during an episode, by rules whose coefficients are searched.

Najarro & Risi, "Meta-Learning through Hebbian Plasticity in Random Networks", NeurIPS 2020, arXiv 2007.02686. The
layers are those of `hebbes.policies.mlp` without biases. For images they are those of `hebbes.policies.cnn`, whose
convolutions are searched and never plastic. An episode begins with weights that are newly drawn, or searched too
(`coevolve`). After every env step except the last, the activities of that env step change the weights, which are then
normalized: `act` does this before it computes its outputs. With `modulation`, the reward of that env step (or the sum
of the rewards since the previous update) sets sign and size of the changes. With `eligibility`, each synapse remembers
its changes until the reward comes (`hebbes.policies.kernels.plastic_layers`). With `activity_window`, weights learn
from averaged activities (`hebbes.policies.activity_windows`).

Departures from the authors' code: Kernels and searched initial weights start Xavier uniform, theirs start as the
coefficients do. Ours are updated together with the coefficients, theirs after learning rate and sigma have decayed, so
that their update is 0.996 times ours. Our weight penalty covers them too, theirs only the coefficients. Where fitness
is constant and only the penalty counts, updates differ by 48 % (searched initial weights) and by 16 % (kernels). Rules
may be shared (`hebbes.policies.sharing`) or neural (`hebbes.policies.kernels.neural_rule`).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import ClassVar

import numpy as np
from jaxtyping import Bool, Float32, Shaped

from hebbes.contracts.option import option
from hebbes.contracts.policy import Buffers, Layout, Rows, State, Weights
from hebbes.policies import kernels
from hebbes.policies.activations import compute_tanh, sigmoid
from hebbes.policies.activity_windows import average_activities, make_windows
from hebbes.policies.base import SizedPolicy, xavier_uniform
from hebbes.policies.cnn import can_convolve, compute_conv_features, compute_conv_shapes
from hebbes.policies.initial_weights import COEVOLVE, INITIAL_WEIGHTS
from hebbes.policies.layers import check_weights, compute_dense_shapes, make_rows
from hebbes.policies.learning_rules import NEURAL_RULES, NORMALIZATIONS, RULES
from hebbes.policies.rule_layout import LayerRule, RuleLayout
from hebbes.policies.sharing import SHARINGS

NEURAL_SHARINGS = ("layer", "global")
MAX_SYNAPSES = 2**24  # with shared rules, a small file can describe a network that fits no memory


@dataclass(frozen=True)
class Hebbian(SizedPolicy):
    """Plastic fully connected layers, after two searched convolutions for images of at least 16 x 16 pixels."""

    trainer: ClassVar[str] = "hebbian"
    """The only training program that takes it, a key of `hebbes.registry.tables.TRAINERS`."""

    hidden_sizes: tuple[int, ...] = option((128, 64), "units of each hidden layer", range=">= 1")
    hebb_rule: str = option("ABCD_lr", "how weights learn", choices=(*RULES, *NEURAL_RULES))
    init_weights: str = option("uni", "initial weights of an episode", choices=(*INITIAL_WEIGHTS, COEVOLVE))
    normalization: str = option("max_abs", "how plastic weights are kept bounded", choices=NORMALIZATIONS)
    output_activity: str = option(
        "raw",
        "what the last layer learns from: the output, or its tanh, the action on Bullet",
        choices=("raw", "action"),
    )
    update_every: int = option(1, "env steps between updates", range=">= 1")
    activity_window: int = option(
        1, "number of latest env steps over which the activities are averaged for an update", range="in [1, 1000]"
    )
    sharing: str = option("synapse", "which synapses share a rule", choices=SHARINGS)
    num_rules: int = option(
        128,
        "sets of coefficients with sharing modulo or clusters",
        range=">= 1",
        needs={"sharing": ("modulo", "clusters")},
    )
    modulation: str = option("none", "what sets sign and size of the changes", choices=("none", "reward"))
    eligibility: bool = option(False, "learn by a running average of each synapse's changes")
    distribution: str = option(
        "normal", "start of the coefficients: N(0, 1) or U(-1, 1)", choices=("normal", "uniform"), only_start=True
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.hebb_rule in NEURAL_RULES and self.sharing not in NEURAL_SHARINGS:
            raise ValueError(
                f"sharing must be {' or '.join(NEURAL_SHARINGS)} with hebb_rule {self.hebb_rule}, got {self.sharing}"
            )
        num_synapses = sum(prod(shape) for shape in self.plastic_shapes.values())
        if num_synapses > MAX_SYNAPSES:
            raise ValueError(f"hidden_sizes must make at most {MAX_SYNAPSES} synapses, got {num_synapses}")
        if self.sharing in ("modulo", "clusters") and self.num_rules > num_synapses:
            raise ValueError(f"num_rules must be <= {num_synapses}, the number of synapses, got {self.num_rules}")

    @cached_property
    def _convolutions(self) -> tuple[dict[str, tuple[int, ...]], int]:
        """Shapes of the kernels by name, and how many numbers enter the first plastic layer."""
        if can_convolve(self.observation_shape):
            return compute_conv_shapes(self.observation_shape)
        return {}, prod(self.observation_shape)

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """Number of inputs of the first plastic layer, then the number of neurons of each plastic layer."""
        return (self._convolutions[1], *self.hidden_sizes, self.num_outputs)

    @property
    def _averaged_sizes(self) -> tuple[int, ...]:
        """Numbers of neurons whose activities are averaged: those of all layers, or of none."""
        return self.sizes if self.activity_window > 1 else ()

    @cached_property
    def plastic_shapes(self) -> dict[str, tuple[int, ...]]:
        """(out, in) of each plastic layer, by name."""
        return compute_dense_shapes(self.sizes, bias=False)

    @cached_property
    def layout(self) -> Layout:
        """Kernels and searched initial weights (as in a static network), coefficients, modulation and eligibility."""
        return Layout({**self._static_layout.shapes, **self.rule_layout.shapes, **self._modulators})

    @cached_property
    def _static_layout(self) -> Layout:
        return Layout(self._convolutions[0] | (self.plastic_shapes if self.init_weights == COEVOLVE else {}))

    @cached_property
    def _modulators(self) -> dict[str, tuple[int, ...]]:
        """m0 and m1 for modulation. For eligibility, one number per layer, whose sigmoid is the rate of its traces."""
        modulation: dict[str, tuple[int, ...]] = {"modulation": (2,)} if self.modulation == "reward" else {}
        return modulation | ({"eligibility": (len(self.plastic_shapes),)} if self.eligibility else {})

    @cached_property
    def rule_layout(self) -> RuleLayout:
        """Where the coefficients lie, and which synapses share them."""
        return RuleLayout(self.hebb_rule, self.sharing, self.num_rules, self.sizes, self.plastic_shapes)

    @cached_property
    def _rules(self) -> list[LayerRule]:
        """Where each layer finds its rule. Not for sharing `clusters`, whose rules depend on buffers."""
        return self.rule_layout.find_rules(self.layout, {})

    @property
    def rule_arrays(self) -> tuple[str, ...]:
        """Names of the arrays of coefficients, adjacent in the layout: one per layer, or a single shared one.

        Shapes: (out, coefficients, in), shared (1, coefficients, sets), neural rules (1, sets, parameters).
        """
        return tuple(self.rule_layout.shapes)

    def check_buffers(self, buffers: Buffers) -> None:
        """Raises ValueError if sharing is `clusters` and a table is missing or names a set that does not exist."""
        super().check_buffers(buffers)
        if self.sharing == "clusters":
            self.rule_layout.read_tables(buffers)

    def initial_params(self, rng: np.random.Generator) -> Float32[np.ndarray, " params"]:
        """Kernels and searched initial weights Xavier uniform, everything else N(0, 1) or U(-1, 1)."""
        static = xavier_uniform(self._static_layout, rng)
        count = self.layout.num_params - len(static)
        rest = rng.standard_normal(count) if self.distribution == "normal" else rng.uniform(-1, 1, count)
        return np.concatenate([static, rest.astype(np.float32)])

    def initial_state(self, weights: Weights, rngs: Sequence[np.random.Generator], buffers: Buffers) -> State:
        """Each member's weights, drawn from its generator or read from its row. No activities yet."""
        members, rows = len(weights), make_rows(weights, self.layout)
        traced = self.plastic_shapes.values() if self.eligibility else ()
        return {
            "rows": [] if rows is weights else [rows],  # made from low-rank weights, once per episode
            "learning": np.ones(members, np.bool_),
            "silent": [],  # hidden neurons, layer by layer: see hebbes.evaluation.interventions
            "weights": self._make_initial_weights(rows, rngs),
            "divisors": [np.ones(members, np.float32) for _ in self.plastic_shapes],
            "activities": [np.zeros((members, size), np.float32) for size in self.sizes],
            "env_steps": np.zeros(members, np.int64),
            "rewards": np.zeros(members, np.float32),
            "traces": [np.zeros((members, *shape), np.float32) for shape in traced],
            "windows": make_windows(members, self.activity_window, self._averaged_sizes),
            "window_counts": [np.zeros(members, np.int64)],
        }

    def estimate_state_bytes(self, *, low_rank: bool) -> int:
        """Bytes of a member's weights, traces and windows, and of its row if that is made from low-rank weights."""
        num_synapses = sum(prod(shape) for shape in self.plastic_shapes.values())
        num_activities = self.activity_window * sum(self._averaged_sizes)
        num_numbers = num_synapses * (1 + self.eligibility) + num_activities + self.layout.num_params * low_rank
        return 4 * num_numbers

    def _make_initial_weights(
        self, rows: Rows, rngs: Sequence[np.random.Generator]
    ) -> list[Float32[np.ndarray, "members _out _in"]]:
        if self.init_weights == COEVOLVE:
            return [self.layout.view(rows, name).copy() for name in self.plastic_shapes]
        draw = INITIAL_WEIGHTS[self.init_weights]
        drawn = [[draw(rng, shape) for shape in self.plastic_shapes.values()] for rng in rngs]
        return [np.stack(layer) for layer in zip(*drawn, strict=True)]

    def act(
        self,
        weights: Weights,
        observations: Shaped[np.ndarray, "members ..."],
        previous_rewards: Float32[np.ndarray, " members"],
        state: State,
        buffers: Buffers,
    ) -> Float32[np.ndarray, "members outputs"]:
        """Outputs of the weights after learning from the previous env step, if an update is due."""
        inputs = self.prepare_inputs(observations, buffers)
        check_weights(weights, self.layout, inputs)
        (rows,) = state["rows"] or [weights]
        if self._convolutions[0]:
            inputs = compute_conv_features(rows, self.layout, inputs)
        inputs = np.ascontiguousarray(inputs.reshape(len(inputs), -1))
        old, new = state["activities"], [inputs]
        due = state["learning"] & (state["env_steps"] > 0) & (state["env_steps"] % self.update_every == 0)
        outputs, modulation = inputs, self._compute_modulation(rows, previous_rewards, state, due)
        rules = self.rule_layout.find_rules(self.layout, buffers) if self.sharing == "clusters" else self._rules
        for number, rule in enumerate(rules):
            layer = kernels.plastic_layers.PlasticLayer(
                state["weights"][number], state["divisors"][number], old[number], old[number + 1], due, modulation
            )
            if self.eligibility:
                layer.traces = state["traces"][number]
                layer.rates = sigmoid(self.layout.view(rows, "eligibility")[:, number])
            outputs = kernels.plastic_layers.plastic_linear(rows, rule, layer, self.normalization, new[-1])
            new.append(compute_tanh(outputs))
            if number < len(state["silent"]):
                new[-1][state["silent"][number]] = 0
        if self.output_activity == "raw":
            new[-1] = outputs.copy()  # the caller may change the outputs
        if state["windows"]:
            (counts,) = state["window_counts"]
            new = average_activities(state["windows"], counts, new)
        state["activities"] = new
        state["env_steps"] += 1
        return outputs

    def _compute_modulation(
        self,
        rows: Rows,
        previous_rewards: Float32[np.ndarray, " members"],
        state: State,
        due: Bool[np.ndarray, " members"],
    ) -> Float32[np.ndarray, " members"] | None:
        """M = tanh(m0 + m1 r), where r sums the rewards since the previous update. None if no layer needs M."""
        if self.modulation == "none":
            return np.ones(len(rows), np.float32) if self.eligibility else None
        rewards = state["rewards"]
        rewards += previous_rewards
        m = self.layout.view(rows, "modulation")
        modulation = np.tanh(m[:, 0] + m[:, 1] * rewards)
        rewards[due | ~state["learning"]] = 0  # no reward from before a reset acts after it
        return modulation


def compute_synaptic_weights(state: State) -> list[Float32[np.ndarray, "members _out _in"]]:
    """New arrays, one per layer: the weights with which the latest `Hebbian.act` computed its outputs."""
    return [
        weights / divisors[:, None, None] for weights, divisors in zip(state["weights"], state["divisors"], strict=True)
    ]
