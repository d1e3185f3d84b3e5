"""The program `import`: files of Najarro & Risi's Hebbian code become a policy file of ours.

Their code (NeurIPS 2020, arXiv 2007.02686) keeps bare numbers: coefficients in one file of torch.save, what is evolved
beside them (kernels, initial weights) in another. What they are for, it takes from the flags of its evaluation.
"""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np

from hebbes.contracts.option import option
from hebbes.environments.spec import EnvironmentSpec
from hebbes.execution.episode import Agent
from hebbes.files.output_file import check_output, write_output
from hebbes.files.policy_file import SavedPolicy
from hebbes.files.reference_coefficients import reference_row
from hebbes.files.torch_file import in_our_order, legacy_table
from hebbes.options.reference_options import ReferenceOptions, as_trained, reference_training
from hebbes.policies.hebbian import Hebbian
from hebbes.policies.kernels.plastic_layers import RULES
from hebbes.programs.continuation import train_command
from hebbes.training.config import TrainConfig
from hebbes.training.provenance import conditions

REFERENCE = {"policy": "hebbian", "sharing": "synapse", "modulation": "none", "eligibility": False}
"""What the reference has no choice of, whatever a preset says."""


@dataclass(frozen=True)
class ImportConfig(ReferenceOptions):
    """Options of an import."""

    path_hebb: str = option("", "the reference's file of coefficients")
    path_coev: str | None = option(None, "its file of evolved kernels, or of co-evolved initial weights and kernels")
    environment: str = option("", "Gymnasium id; short and retired names are mapped to today's")
    output: str = option("", "the policy file to write; it must not exist")
    hebb_rule: str | None = as_trained("hebb_rule", tuple(RULES))
    init_weights: str | None = as_trained("init_weights")
    normalisation: str | None = as_trained("normalisation")
    output_activity: str | None = as_trained("output_activity")
    imports: tuple[str, ...] = option((), "packages to import first, which register environments", flag="import")

    def __post_init__(self) -> None:
        for name in ("path_hebb", "environment", "output"):
            if not getattr(self, name):
                raise ValueError(f"{name} must be given")

    def training(self) -> tuple[TrainConfig, EnvironmentSpec, Agent]:
        """The training that would have made the policy."""
        given = self.given(fields(self))
        for name in ("path_hebb", "path_coev", "output"):
            given.pop(name, None)
        return reference_training("hebbian", self.environment, {**given, **REFERENCE})


def import_reference(config: ImportConfig) -> str:
    """Reads, writes, and says what to do with it; ValueError, and no file, where the numbers are of another network."""
    check_output(Path(config.output))
    trained, environment, agent = config.training()
    assert isinstance(agent.policy, Hebbian)  # as asked for
    coefficients = legacy_table(Path(config.path_hebb))
    evolved = np.empty(0) if config.path_coev is None else legacy_table(Path(config.path_coev))
    try:
        row = reference_row(agent.policy, coefficients, evolved)
    except ValueError as error:
        files = config.path_hebb + (f", {config.path_coev}" if config.path_coev else "")
        raise ValueError(f"{files}: {error}") from error
    saved = SavedPolicy(
        policy=agent.policy,
        policy_name=trained.policy,
        weights=in_our_order(row, agent.policy),
        buffers={},
        action_head=agent.action_head,
        environment=environment,
        provenance={"path_hebb": config.path_hebb, "path_coev": config.path_coev, **conditions()},
    )
    command = train_command(config.output, saved)
    write_output(Path(config.output), saved)
    imports = f" --import {shlex.join(config.imports)}" if config.imports else ""
    return "\n".join(
        (
            f"parameters      {len(row):,}",
            f"weights         {config.output}",
            f"to evaluate     python evaluate_hebbian.py --path_weights {shlex.quote(config.output)}{imports}",
            f"to go on        {command}",
        )
    )


def refuse_reference_flags(arguments: Sequence[str]) -> None:
    """ValueError with the commands to give instead where arguments are those of the reference's own evaluation."""
    if any(argument.replace("-", "_").startswith("__path_hebb") for argument in arguments):
        raise ValueError(
            "path_hebb: files of the reference become a policy file first: "
            f"python -m hebbes import {shlex.join(arguments)} --output imported.dat, "
            "then python evaluate_hebbian.py --path_weights imported.dat"
        )
