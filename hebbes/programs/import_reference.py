"""The program `import`, which makes a policy file of the files of Najarro & Risi's Hebbian code.

Their code (NeurIPS 2020, arXiv 2007.02686) saves bare numbers with torch.save: coefficients in one file, and what is
evolved with them (kernels, initial weights) in another. The flags of its evaluation say what the numbers are for.
"""

from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np

from hebbes.contracts.errors import prefix_errors
from hebbes.contracts.option import check_options, option
from hebbes.execution.provenance import find_conditions
from hebbes.files.output_file import check_output, write_output
from hebbes.files.policy_file import SavedPolicy
from hebbes.files.reference_coefficients import convert_reference_coefficients
from hebbes.files.torch_file import read_torch_table, swap_image_axes
from hebbes.options.reference_options import ReferenceOptions, copy_training_option
from hebbes.policies.hebbian import Hebbian
from hebbes.policies.learning_rules import RULES
from hebbes.programs.reference_training import make_reference_training
from hebbes.training.owners import INCIDENTAL
from hebbes.training.printed_commands import format_command

REFERENCE = {"policy": "hebbian", "sharing": "synapse", "modulation": "none", "eligibility": False}
"""Options that are fixed in the reference's code, and that no preset may change."""


@dataclass(frozen=True)
class ImportConfig(ReferenceOptions):
    """Options of an import."""

    path_hebb: str = option("", "the file of coefficients that Najarro & Risi's code wrote")
    path_coev: str | None = option(None, "its file of evolved kernels, or of co-evolved initial weights and kernels")
    environment: str = option("", "Gymnasium id; short and retired names are mapped to current ones")
    output: str = option("", "the policy file to write; it must not exist")
    hebb_rule: str | None = copy_training_option("hebb_rule", tuple(RULES))
    init_weights: str | None = copy_training_option("init_weights")
    normalization: str | None = copy_training_option("normalization")
    output_activity: str | None = copy_training_option("output_activity")
    imports: tuple[str, ...] = option((), "packages to import first, which register environments", flag="import")

    def __post_init__(self) -> None:
        check_options(self)
        for name in ("path_hebb", "environment", "output"):
            if not getattr(self, name):
                raise ValueError(f"{name} must be given")


def import_reference(config: ImportConfig) -> str:
    """Writes the policy file, and returns a text that says how to use it.

    Raises ValueError, and writes no file, if the numbers do not fit the network.
    """
    check_output(Path(config.output))
    described = [each for each in fields(config) if each.name not in ("path_hebb", "path_coev", "output")]
    given = config.collect_given(described) | REFERENCE
    trained, environment, agent = make_reference_training("hebbian", config.environment, given)
    assert isinstance(agent.policy, Hebbian)  # REFERENCE asks for it
    coefficients = read_torch_table(Path(config.path_hebb))
    evolved = np.empty(0) if config.path_coev is None else read_torch_table(Path(config.path_coev))
    read = config.path_hebb + (f", {config.path_coev}" if config.path_coev else "")
    with prefix_errors(f"{read}: "):
        row = convert_reference_coefficients(agent.policy, coefficients, evolved)
    known = trained.list_used_options(without=(*INCIDENTAL, "trainer", "training", "strategy"))
    known |= {"policy": trained.choices.policy, "observation_normalization": False}
    files = {"path_hebb": config.path_hebb, "path_coev": config.path_coev}
    weights, provenance = swap_image_axes(row, agent.policy), {**files, **find_conditions(), "options": known}
    name = trained.choices.policy
    saved = SavedPolicy(agent.policy, name, weights, {}, agent.action_head, environment, provenance)
    write_output(Path(config.output), saved)
    output, imports = config.output, config.imports
    evaluate = format_command("evaluate_hebbian", "--path_weights", output, imports=imports)
    train = format_command("train_hebbian", "--config", output, "--init_from", output, imports=imports)
    return "\n".join(
        (
            f"parameters      {len(row):,}",
            f"weights         {config.output}",
            f"to evaluate     {evaluate}",
            f"to go on        {train}",
        )
    )
