"""The options of `evaluate_hebbian`: those of `evaluate_static`, interventions in episodes, and plots of learning."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from hebbes.contracts.errors import prefix_errors
from hebbes.contracts.option import option
from hebbes.contracts.policy import Policy
from hebbes.evaluation.interventions import INTERVENTIONS, LesionedPolicy, intervene
from hebbes.options.evaluation import EvaluateConfig
from hebbes.policies.hebbian import Hebbian
from hebbes.policies.initial_weights import INITIAL_WEIGHTS


@dataclass(frozen=True)
class HebbianEvaluateConfig(EvaluateConfig):
    """Options of an evaluation; each value of an intervention is played alone and compared with the intact policy."""

    freeze_at: tuple[int, ...] = option((), "play without learning from this env step on", range=">= 0")
    reset_weights_at: tuple[int, ...] = option(
        (), "play with weights that are drawn anew in this env step", range=">= 0"
    )
    lesion: tuple[float, ...] = option(
        (), "play with this fraction of each hidden layer silenced, drawn per episode", range="in [0, 1]"
    )
    init_weights: tuple[str, ...] = option(
        (), "play with other weights at the start of an episode", choices=tuple(INITIAL_WEIGHTS)
    )
    plots: str | None = option(None, "folder for plots of what plastic policies learn in their first episodes")
    plot_layers: tuple[int, ...] = option((), "layers whose weights are plotted, from 1 (default: all)")

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in INTERVENTIONS:
            values = getattr(self, name)
            if len(set(values)) < len(values):
                raise ValueError(f"{name} names a value twice, got {' '.join(map(str, values))}")
        if self.plots == "":
            raise ValueError("plots must name a folder, got ''")
        if self.plot_layers and self.plots is None:
            raise ValueError("plot_layers needs plots, the folder for them")

    def check_policies(self, policies: Mapping[str, Policy]) -> None:
        """Raises ValueError if there are interventions or plots, but no plastic policy."""
        requested = [name for name in (*INTERVENTIONS, "plots") if getattr(self, name)]
        if requested and not any(isinstance(policy, Hebbian) for policy in policies.values()):
            raise ValueError(f"{requested[0]} is for hebbian policies, and there is none in {', '.join(policies)}")

    def make_variants(self, path: str, policy: Policy, longest: int | None) -> dict[str, Policy]:
        """The intact policy of a file, under "", and if it is plastic, one policy for each intervention.

        `longest` is the largest number of env steps in an episode, None if it is not known. Raises ValueError if an
        intervention does not fit the policy, or no episode reaches its env step.
        """
        if not isinstance(policy, Hebbian):
            return super().make_variants(path, policy, longest)
        num_layers = len(policy.hidden_sizes) + 1
        if not all(1 <= layer <= num_layers for layer in self.plot_layers):
            raise ValueError(f"plot_layers must be in 1 to {num_layers} for {path}, got {list(self.plot_layers)}")
        return super().make_variants(path, policy, longest) | self._make_interventions(path, policy, longest)

    def _make_interventions(self, path: str, policy: Hebbian, longest: int | None) -> dict[str, Policy]:
        found: dict[str, Policy] = {}
        for name in INTERVENTIONS:
            for value in getattr(self, name):
                with prefix_errors(f"{path}: "):
                    variant = intervene(policy, name, value, longest)
                found[f"{name} {_describe(value, variant)}"] = variant
        return found


def _describe(value: float | str, variant: Policy) -> str:
    """The value of an intervention in words."""
    if not isinstance(variant, LesionedPolicy):
        return str(value)
    silent, of = sum(variant.num_silent), sum(variant.policy.hidden_sizes)
    return f"{np.format_float_positional(variant.fraction, trim='-')} ({silent} of {of} neurons)"
