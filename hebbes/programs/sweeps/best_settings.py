"""The best settings of a sweep as a preset."""

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from hebbes.contracts.yaml_text import format_yaml
from hebbes.files.option_file import MEASURED
from hebbes.options.presets import find_preset, read_preset, read_shared_options
from hebbes.programs.sweeps.finals import START, Finalist
from hebbes.programs.sweeps.study import Study
from hebbes.statistics.table import format_number
from hebbes.training.config import TrainConfig
from hebbes.training.owners import INCIDENTAL, choose_names, list_part_kinds
from hebbes.training.printed_commands import format_command

BEST_YAML = "best.yaml"


def format_preset(finalists: Sequence[Finalist], study: Study) -> str:
    """YAML text of the best finalist's options, with what was measured. `--config` reads it, and it can be a preset."""
    best = max(finalists, key=lambda each: each.score)
    measured = _describe_measurement(best, len(finalists) - 1, len(study.trials))
    options = {MEASURED: measured, **_list_options(best.config, [each.option.key for each in study.searched])}
    return format_yaml(options)


def format_training_command(config: TrainConfig, preset: Path) -> str:
    """The command line that trains with this file, which has neither the environment, packages nor initial weights."""
    start = ["--init_from", config.run.init_from] if config.run.init_from else []
    options = ["--environment", config.environment.id, *start, "--config", str(preset)]
    return format_command(f"train_{config.trainer}", *options, imports=config.environment.imports)


def _list_options(config: TrainConfig, searched: Sequence[str]) -> dict[str, Any]:
    """The options of the method, by name: those that trials vary or presets set, and those without their default."""
    trainer, environment = config.trainer, config.environment.id
    parts = {kind: config.as_options()[kind] for kind in list_part_kinds(trainer)}
    preset = read_preset(trainer, find_preset(trainer, environment, None), parts)
    in_presets = {*read_shared_options(environment), *preset}
    names, values = choose_names(config.options), config.values
    kept = {
        names[each.key]
        for each in config.options
        if each.key in searched
        or values[each.key] != each.default
        or not in_presets.isdisjoint((each.short_name, each.full_name))
    }
    used = config.list_used_options(without=INCIDENTAL)
    return {name: value for name, value in used.items() if name in kept - {"environment", "import"}}


def _describe_measurement(best: Finalist, num_rivals: int, num_trials: int) -> str:
    """What was measured, in one line."""
    budget, seed = best.config.training.max_env_steps, best.config.run.seed
    rivals = f"{num_rivals} finalist{'s' * (num_rivals != 1)} of {num_trials} trial{'s' * (num_trials != 1)}"
    origin = f"{rivals} on seed {seed}, {datetime.now(UTC):%Y-%m-%d}"
    start = f", all from {best.config.run.init_from}" if best.config.run.init_from else ""
    rank = "the start, which is at least as good as" if best.name == START else "the best of"
    episodes = max(map(len, best.returns.values()))
    values = ", ".join(format_number(float(returns.mean())) for returns in best.returns.values())
    seeds = " to ".join(map(str, dict.fromkeys((min(best.returns), max(best.returns)))))
    return (
        f"IQM {best.summary.iqm} of seeds {seeds} ({values}), means over {episodes} "
        f"test episodes after {budget:,} env steps{start}; {rank} {origin}"
    )
