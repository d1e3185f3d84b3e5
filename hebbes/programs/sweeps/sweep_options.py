"""The options of a sweep: its own, those of its trials, and what the trials vary."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hebbes.contracts.errors import prefix_errors
from hebbes.contracts.option import check_options, option
from hebbes.contracts.search_space import Choice, LogUniform, SearchSpace, Uniform
from hebbes.files.atomic_file import check_place
from hebbes.files.option_file import has_measured_score
from hebbes.options.option_reader import OptionReader
from hebbes.options.texts import read_texts
from hebbes.registry.lookup import list_names
from hebbes.training.config import TrainConfig, make_config
from hebbes.training.owners import INCIDENTAL, OwnedOption, choose_names, find_trainer, list_part_kinds

SWEEP_YAML = "sweep.yaml"
"""The file in a sweep's folder that says what its trials are. Its id is in the storage too."""
TRIAL = "trial"
"""The name of a trial's folder, before its number."""
SEARCHED = "search "
"""What begins the text of an option's search space in that file."""


@dataclass(frozen=True)
class SweepOptions:
    """Options of a sweep. All others are those of its trials."""

    trainer: str = option(
        "static",
        "which program trains: train_static.py, train_hebbian.py or train_hybrid.py",
        choices=tuple(list_names("trainer")),
    )
    trials: int = option(30, "trials in total, by all processes; more can be asked for later", range="in [1, 100000]")
    storage: str | None = option(
        None, "URL of the database with the trials, as sqlite:///sweep.db (default: study.db in the sweep's folder)"
    )
    search: tuple[str, ...] = option(
        (),
        "also vary these options, or other values of them: NAME=uniform:LOW:HIGH, NAME=log:LOW:HIGH, NAME=choice:A:B",
    )
    finalists: int = option(
        3,
        "number of best trials whose settings are trained with other seeds, as are those that the sweep starts from",
        range=">= 0",
    )
    final_seeds: int = option(
        5, "seeds for the settings of each finalist and of the start, those that follow --seed", range="in [1, 1000]"
    )
    output: str | None = option(
        None,
        "the preset file for the best settings, also -o; it replaces another preset (default: best.yaml in the folder)",
    )

    def __post_init__(self) -> None:
        check_options(self)
        if self.output is not None:
            check_place("output", Path(self.output))
            _check_replaceable(Path(self.output))
            if not self.finalists:
                raise ValueError(f"output needs finalists, whose best settings it holds, got {self.output}")


def _check_replaceable(path: Path) -> None:
    """ValueError for a file that is no preset with a measured score: the sweep would replace it."""
    if path.exists() and not has_measured_score(path):
        raise ValueError(f"output {path} exists already and is not a preset; choose another")


@dataclass(frozen=True)
class SearchedOption:
    """An option that the trials of a sweep vary."""

    name: str
    """As files of a run have it."""
    option: OwnedOption
    space: SearchSpace


def limit_by_env_steps(config: TrainConfig) -> TrainConfig:
    """The config with env steps as the only budget, unless generations were typed.

    ValueError without `max_env_steps`, with several seeds, with a run to be resumed, or with a log of completions.
    """
    if config.run.resume is not None:
        raise ValueError(f"resume has no meaning for a sweep, which goes on by itself, got {config.run.resume!r}")
    if config.training.max_env_steps is None:
        raise ValueError("a sweep needs max_env_steps, the env steps of a trial")
    if config.run.seeds > 1:
        raise ValueError(f"seeds must be 1 in a sweep, got {config.run.seeds}; final_seeds are those of the finalists")
    if (log := getattr(config.settings, "completion_log", None)) is not None:
        raise ValueError(f"completion_log tells runs apart by their seeds, and trials have the same one, got {log}")
    if hasattr(config.trainer_options, "generations") and "trainer.generations" not in config.typed:
        return config.change(trainer_options={"generations": None})
    return config


def check_finals(options: SweepOptions, config: TrainConfig) -> None:
    """ValueError if finalists could not be compared."""
    if options.finalists and not config.run.test_episodes:
        raise ValueError("test_episodes must be >= 1 in a sweep with finalists, got 0")
    if options.finalists and config.run.seed + options.final_seeds >= 2**63:
        raise ValueError(
            f"seed must leave room for {options.final_seeds} final_seeds below 2^63, got {config.run.seed}"
        )


def find_searched_options(config: TrainConfig, texts: Sequence[str]) -> list[SearchedOption]:
    """The options that trials vary: those whose declaration says how and that nobody typed, and those of `search`.

    ValueError if there are none, or if one of `search` cannot be varied or has no effect.
    """
    names, unused = choose_names(config.options), config.find_unused()
    declared = {
        each.key: SearchedOption(names[each.key], each, each.field.metadata["search"])
        for each in config.options
        if each.field.metadata.get("search") and each.key not in (*unused, *config.typed)
    }
    asked = {each.option.key: each for each in _read_spaces(config, texts, names)}
    found = {**declared, **asked}
    varied = {each.option.field.name for each in found.values()}
    for key, each in asked.items():
        if key in unused and not varied & each.option.field.metadata["needs"].keys():
            raise ValueError(f"search {each.name} has no effect: it is only used with {unused[key]}")
    if not found:
        method = config.choices.method or config.trainer
        raise ValueError(
            f"nothing to vary: every option of {method} that has a search space was given a value; give search"
        )
    return list(found.values())


def _read_spaces(config: TrainConfig, texts: Sequence[str], names: Mapping[str, str]) -> Iterator[SearchedOption]:
    """The options in the texts of `search`."""
    reader, seen = OptionReader(config.owners), set[str]()
    for text in texts:
        name, _, spelled = text.partition("=")
        with prefix_errors(f"search {text}: "):
            chosen, is_off = reader.find(name)
            if chosen.key in seen:
                raise ValueError(f"{name} is given twice")
            seen.add(chosen.key)
            if is_off or not _may_vary(config, chosen):
                raise ValueError(f"{name} cannot be varied")
            space = _read_space(chosen, spelled)
        yield SearchedOption(names[chosen.key], chosen, space)


def _may_vary(config: TrainConfig, searched: OwnedOption) -> bool:
    """Whether trials may differ in an option: one of the search with a single value that chooses no parts."""
    kind, is_list, _ = searched.hint
    kinds = ("trainer", "training", "policy", "wrapper", find_trainer(config.trainer).method_kind)
    budgets = (*list_part_kinds(config.trainer), "max_env_steps", "generations")
    return searched.owner.kind in kinds and not is_list and kind is not dict and searched.field.name not in budgets


def _read_space(searched: OwnedOption, text: str) -> SearchSpace:
    """The values in a text such as log:0.01:1; each of them must be one of the option."""
    kind, *items = text.split(":")
    values = tuple(read_texts(searched, [item]) for item in items)
    if kind == "choice":
        return Choice(values)
    is_number = all(isinstance(value, int | float) and not isinstance(value, bool) for value in values)
    if kind not in ("uniform", "log") or len(values) != 2 or not is_number:
        raise ValueError("a search space is uniform:LOW:HIGH, log:LOW:HIGH or choice:A:B")
    return (LogUniform if kind == "log" else Uniform)(*values)


def set_params(config: TrainConfig, searched: Sequence[SearchedOption], params: Mapping[str, Any]) -> TrainConfig:
    """The config with a trial's parameters, rounded; ValueError if they do not fit together."""
    drawn = {each.option.key: each.space.round(params[each.name]) for each in searched}
    return make_config(config.choices, {**config.values, **drawn}, config.typed)


def describe_sweep(config: TrainConfig, searched: Sequence[SearchedOption]) -> dict[str, Any]:
    """What all processes of a sweep must agree on: the options of its trials and its search space."""
    varied = {each.name: f"{SEARCHED}{each.space}" for each in searched}
    fixed = {"trainer": config.trainer, "seed": config.run.seed, "init_from": config.run.init_from}
    return {**fixed, **config.list_used_options(without=INCIDENTAL), **varied}
