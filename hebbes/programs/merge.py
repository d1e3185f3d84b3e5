"""The program `merge`: one policy file with learning rules becomes another, with fewer of them."""

from dataclasses import dataclass, replace
from pathlib import Path

from hebbes.contracts.option import option
from hebbes.contracts.randomness import Purpose, stream
from hebbes.files.output_file import check_output, write_output
from hebbes.files.policy_file import load_policy
from hebbes.policies.hebbian import Hebbian
from hebbes.policies.rule_merging import Merged, merged
from hebbes.programs.continuation import train_command
from hebbes.training.provenance import conditions


@dataclass(frozen=True)
class MergeConfig:
    """Options of a merge."""

    path_weights: str = option("", "the policy file whose rules are merged")
    num_rules: int = option(128, "how many rules are left, at most")
    output: str = option("", "the policy file to write; it must not exist")
    seed: int = option(0, "seed of the clusters' starts, >= 0")
    imports: tuple[str, ...] = option((), "packages to import first; the file may then name their code", flag="import")

    def __post_init__(self) -> None:
        for name in ("path_weights", "output"):
            if not getattr(self, name):
                raise ValueError(f"{name} must name a policy file")
        for name, least in (("num_rules", 1), ("seed", 0)):
            if getattr(self, name) < least:
                raise ValueError(f"{name} must be >= {least}, got {getattr(self, name)}")


def merge(config: MergeConfig) -> str:
    """Merges, writes, and says what came of it; ValueError, and no file, where that cannot be done."""
    source, output = Path(config.path_weights), Path(config.output)
    check_output(output)
    saved = load_policy(source, config.imports)
    if not isinstance(saved.policy, Hebbian):
        raise ValueError(f"path_weights {source}: the policy {saved.policy_name!r} has no learning rules to merge")
    try:
        rng = stream(config.seed, Purpose.INITIAL_PARAMS)
        result = merged(saved.policy, saved.weights, saved.buffers, config.num_rules, rng)
    except ValueError as error:
        raise ValueError(f"path_weights {source}: {error}") from error
    made = replace(
        saved,
        policy=result.policy,
        weights=result.weights,
        buffers=result.buffers,
        provenance={"merged_from": {"path": str(source), **saved.provenance}, "seed": config.seed, **conditions()},
    )
    command = train_command(config.output, made)
    write_output(output, made)
    return "\n".join([*_figures(result, len(saved.weights), config), f"to go on        {command}"])


def _figures(result: Merged, before: int, config: MergeConfig) -> list[str]:
    """What came of a merge, line by line."""
    found, share = result.policy.num_rules, result.error / result.variance if result.variance else 0.0
    return [
        f"parameters      {before:,} before, {len(result.weights):,} after",
        f"rules           {found:,}"
        + (f"; more of {config.num_rules:,} would be empty" if found < config.num_rules else ""),
        f"error           {result.error:.4g}, mean squared distance of a synapse's coefficients from its rule's: "
        f"{share:.1%} of their variance",
        f"weights         {config.output}",
    ]
