"""The options of a resumed run: those of its newest checkpoint, and flags that a resume may change."""

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from hebbes.contracts.errors import prefix_errors, say
from hebbes.environments.part_spec import PartSpec
from hebbes.files.option_file import CONFIG_YAML, read_yaml
from hebbes.options.option_reader import OptionReader
from hebbes.options.sources import DECIDING, Source, SourceReader, find_deciding_options
from hebbes.options.texts import GivenOption, format_options
from hebbes.registry.former_names import find_current_class_name, find_current_option_name, rename_saved_options
from hebbes.registry.lookup import check_allowed, find_class, import_users_module, list_names
from hebbes.training.config import TrainConfig, find_users_modules, make_config
from hebbes.training.owners import AUTO, OwnedOption, choose_names, list_all_owners, list_part_kinds, shorten_names
from hebbes.training.printed_commands import format_command

PLACE = ("folder", "run_name")
"""Options that say where the folder of a run was made."""


def resume_config(trainer: str, given: Sequence[GivenOption]) -> TrainConfig:
    """The config of the saved run that the option `resume` names, with the other given options if they may change.

    Of the runs of several seeds, it is that of the first that can be read, with the first seed and the number of seeds.
    """
    from hebbes.training.run_folder import find_seed_folders, read_seeds  # imports the simulators

    folder = Path(find_deciding_options(trainer, given)["resume"])
    seeds = read_seeds(folder)
    seed_options = {} if seeds is None else {"seed": seeds.start, "seeds": seeds.stop - seeds.start}
    first = folder if seeds is None else _find_readable(find_seed_folders(folder, seeds))
    config = _make_resumed_config(trainer, first, given, seed_options)
    return config.change(run={"resume": str(folder)})


def _find_readable(folders: Sequence[Path]) -> Path:
    """The first of these runs that has a checkpoint which can be read; the first run if none has."""
    from hebbes.files.checkpoint import FOLDER, load_newest_checkpoint  # imports safetensors

    for folder in folders:
        with suppress(ValueError, OSError):
            load_newest_checkpoint(folder / FOLDER)
            return folder
    return folders[0]


def _make_resumed_config(
    trainer: str, folder: Path, given: Sequence[GivenOption], seed_options: Mapping[str, int]
) -> TrainConfig:
    imports = find_deciding_options(trainer, given).get("import", ())
    of_checkpoint = _read_saved_options(trainer, folder, imports)
    for package in imports:
        import_users_module("--import", package)
    saved = {**of_checkpoint, **seed_options}
    reader = SourceReader(trainer)
    reader.read(Source(f"the run in {folder}", format_options(saved), is_lenient=True, is_saved=True))
    reader.notices.clear()  # the names in a checkpoint are no choice of the user's
    options = _map_options(reader)
    _check_belongs(trainer, of_checkpoint, options.values(), folder)
    known = OptionReader([*list_all_owners(trainer), *dict.fromkeys(each.owner for each in options.values())])
    if unknown := sorted(name for name in saved if not known.knows(name)):
        raise ValueError(f"the run in {folder} has the option {unknown[0]}, which this program does not know")
    missing = [each for key, each in options.items() if key not in reader.values and each.is_saved]
    if missing:
        names = ", ".join(each.short_name for each in missing)
        say(f"{folder}: the run was saved without {names}; using the defaults")
    saved_values, before = dict(reader.values), make_config(reader.choices, reader.values, frozenset())
    reader.read(Source("", [(name, _find_current_names(name, texts, before)) for name, texts in given]))
    for notice in reader.notices:
        say(notice)
    options = _map_options(reader)
    new = frozenset(key for key in reader.typed if reader.values[key] != before.values.get(key))
    after = make_config(reader.choices, reader.values, new)
    _check_changes(before, after, [options[key] for key in sorted(reader.typed)], folder)
    after.check_typed_options()
    changed = {key: reader.values[key] for key in reader.typed if _may_change(options[key])}
    values = saved_values | changed | {"environment.imports": saved_values["environment.imports"]}
    return make_config(replace(before.choices, loggers=after.choices.loggers), values, frozenset())


def _find_current_names(name: str, texts: Sequence[str], before: TrainConfig) -> list[str]:
    """The values of an option with the names of today, those of environments as a new run would find them.

    The name of an environment stays as it is if it stands for options that the run does not have.
    """
    if DECIDING.get(name) != "environment":
        return [find_current_class_name(text) for text in texts]
    from hebbes.environments.ids import resolve  # imports Gymnasium

    found = [resolve(text, before.environment.imports) for text in texts]
    ours = before.environment.env_kwargs.items()
    return [
        each.environment if each.env_kwargs.items() <= ours else text for each, text in zip(found, texts, strict=True)
    ]


def _map_options(reader: SourceReader) -> dict[str, OwnedOption]:
    """Every option, by key, of the owners that the sources have chosen."""
    return {each.key: each for owner in reader.owners for each in owner.options}


def _read_saved_options(trainer: str, folder: Path, imports: Sequence[str]) -> dict[str, Any]:
    """The options in a run's newest checkpoint; ValueError if this program or the user does not allow the run."""
    from hebbes.files.checkpoint import FOLDER, load_newest_checkpoint  # imports safetensors

    checkpoint, _ = load_newest_checkpoint(folder / FOLDER)
    with prefix_errors(f"the run in {folder} "):
        saved = rename_saved_options(shorten_names(trainer, checkpoint.config))
        makers = [maker for maker in list_names("trainer") if {"environment", *list_part_kinds(maker)} <= saved.keys()]
        if not makers:
            raise ValueError("lacks options that every run has, such as its environment")
        check_allowed(find_users_modules(trainer, saved), imports)
    policy, maker = saved["policy"], trainer if trainer in makers else makers[0]
    maker = maker if policy == AUTO else getattr(find_class("policy", policy), "trainer", maker)
    if maker != trainer:
        program = format_command(f"train_{maker}")
        raise ValueError(f"the run in {folder} was made by {program}; resume it with that")
    return saved


def _check_belongs(trainer: str, saved: Mapping[str, Any], options: Collection[OwnedOption], folder: Path) -> None:
    """ValueError if config.yaml has other options than the newest checkpoint, so that one is of another run.

    Only those are compared that no resume may change and that do not say where the run is. A file that is missing says
    nothing, and one that cannot be read is refused too: it may have been edited.
    """
    path = folder / CONFIG_YAML
    try:
        given = shorten_names(trainer, read_yaml(path)) if path.is_file() else {}  # reading a pipe would wait
    except ValueError as error:
        raise ValueError(f"resume {folder}: {error}; move it away") from error
    written = rename_saved_options(given)
    fixed, saved_as = [each for each in options if not _may_change(each)], choose_names([*options])
    names = {name: saved_as[each.key] for each in fixed for name in (each.short_name, each.full_name)}
    for spelled in sorted(given):
        name = names.get(find_current_option_name(spelled.replace("-", "_"), names), "")
        if name in saved and name not in PLACE and saved[name] != written[spelled]:
            raise ValueError(
                f"resume {folder}: {name} is {saved[name]!r} in the newest checkpoint and {written[spelled]!r} in "
                f"{CONFIG_YAML}: one of them was edited, or is of another run; if the checkpoint is right, "
                f"move {CONFIG_YAML} away"
            )


def _may_change(option: OwnedOption) -> bool:
    return bool(option.field.metadata.get("changeable")) or option.owner.kind == "logger"


def _check_changes(before: TrainConfig, after: TrainConfig, typed: Sequence[OwnedOption], folder: Path) -> None:
    """ValueError if one of the options that were typed changes what a resumed run must keep.

    Wrappers are compared by what they do: a list of them and their own options can say the same.
    """
    has_same_wrappers = _list_wrappers(before) == _list_wrappers(after)
    values, saved = after.values, before.values
    for each in typed:
        names_wrappers = each.owner.kind == "wrapper" or each.key == "environment.wrappers"
        if _may_change(each) or (names_wrappers and has_same_wrappers):
            continue
        name, was, now = each.short_name, saved.get(each.key, each.default), values[each.key]
        if not each.is_saved:
            raise ValueError(f"{name} cannot be given when a run is resumed: its options come from {folder}")
        if now != was:
            raise ValueError(
                f"{name} cannot change when a run is resumed: it is {_show(was)} in {folder}, got {_show(now)}"
            )


def _show(value: Any) -> str:
    """A value as a user would write it."""
    return "none" if value is None else repr(value)


def _list_wrappers(config: TrainConfig) -> list[PartSpec]:
    return sorted((*config.list_put_on("wrapper"), *config.list_named("wrapper")), key=lambda spec: spec.name)
