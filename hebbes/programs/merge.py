"""The program `merge`, which makes a policy file with fewer learning rules from another."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from hebbes.contracts.errors import prefix_errors
from hebbes.contracts.option import check_options, option
from hebbes.contracts.randomness import Purpose, make_generator
from hebbes.evaluation.arguments import IMPORT_HELP
from hebbes.execution.provenance import find_conditions
from hebbes.files.output_file import check_output, write_output
from hebbes.files.policy_file import SavedPolicy, list_policy_options, read_policy_file
from hebbes.policies.hebbian import Hebbian
from hebbes.policies.rule_merging import MergeResult, merge_rules
from hebbes.training.printed_commands import format_command


@dataclass(frozen=True)
class MergeConfig:
    """Options of a merge."""

    path_weights: str = option("", "the policy file whose rules are merged")
    num_rules: int = option(128, "largest number of rules that are left", range=">= 1")
    output: str = option("", "the policy file to write; it must not exist")
    seed: int = option(0, "seed of the initial clusters", range=">= 0")
    imports: tuple[str, ...] = option((), IMPORT_HELP, flag="import")

    def __post_init__(self) -> None:
        check_options(self)
        for name in ("path_weights", "output"):
            if not getattr(self, name):
                raise ValueError(f"{name} must name a policy file")


def merge(config: MergeConfig) -> str:
    """Writes the merged policy file, and returns a text that describes it.

    Raises ValueError, and writes no file, if the rules cannot be merged.
    """
    source, output = Path(config.path_weights), Path(config.output)
    check_output(output)
    saved = read_policy_file(source, config.imports)
    if not isinstance(saved.policy, Hebbian):
        raise ValueError(f"path_weights {source}: the policy {saved.policy_name!r} has no learning rules to merge")
    with prefix_errors(f"path_weights {source}: "):
        rng = make_generator(config.seed, Purpose.INITIAL_PARAMS)
        result = merge_rules(saved.policy, saved.weights, saved.buffers, config.num_rules, rng)
    origin = _describe_origin(config, saved, result.policy)
    merged = replace(saved, policy=result.policy, weights=result.weights, buffers=result.buffers, provenance=origin)
    write_output(output, merged)
    files = "--config", config.output, "--init_from", config.output
    command = format_command("train_hebbian", *files, imports=config.imports)
    return "\n".join([*_describe_result(result, len(saved.weights), config), f"to go on        {command}"])


def _describe_origin(config: MergeConfig, saved: SavedPolicy, policy: Hebbian) -> dict[str, Any]:
    """Where the merged rules come from. The options are those of the training, with those of the merged policy."""
    origin, spec = dict(saved.provenance), saved.environment
    known = {
        "environment": spec.environment,
        "import": list(spec.imports),
        "env_kwargs": dict(spec.env_kwargs),
        "morphologies": list(spec.morphologies),
        "policy": saved.policy_name,
        "observation_normalization": "observation_mean" in saved.buffers,
    }
    trained = origin.pop("options", known)  # which files of earlier versions lack
    return {
        "merged_from": {"path": config.path_weights, **origin},
        "merge_seed": config.seed,
        **find_conditions(),
        "options": trained | list_policy_options(policy),
    }


def _describe_result(result: MergeResult, before: int, config: MergeConfig) -> list[str]:
    """The lines that describe the result of a merge; `before` is the number of parameters before it."""
    found, share = result.policy.num_rules, result.error / result.variance if result.variance else 0.0
    return [
        f"parameters      {before:,} before, {len(result.weights):,} after",
        f"rules           {found:,}"
        + (f"; more of {config.num_rules:,} would be empty" if found < config.num_rules else ""),
        f"error           {result.error:.4g}, mean squared distance of a synapse's coefficients from its rule's: "
        f"{share:.1%} of their variance",
        f"weights         {config.output}",
    ]
