"""The command line: flags override `--config`, which overrides presets, which override defaults.

Everything is checked before anything starts.
"""

import shlex
import sys
from argparse import SUPPRESS
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from math import inf
from pathlib import Path
from typing import Any, NoReturn

import yaml

from hebbes.contracts.option import map_flags
from hebbes.environments.ids import resolve
from hebbes.files.checkpoint import FOLDER as CHECKPOINTS
from hebbes.files.checkpoint import load_newest_checkpoint
from hebbes.files.option_file import read_yaml
from hebbes.options.flags import OneLineParser, add_options, convert_value, format_arguments, replace_dashes
from hebbes.options.presets import find_preset, read_shared_options
from hebbes.recording.standard_output import print_or_exit
from hebbes.registry.former_names import check_names, rename_classes, rename_options
from hebbes.registry.lookup import check_allowed, find_class
from hebbes.registry.users_classes import convert_errors
from hebbes.training.config import (
    CHANGEABLE,
    GROWTH,
    NOT_SAVED,
    VALUES_IN_OLD_CHECKPOINTS,
    TrainConfig,
    find_users_modules,
)
from hebbes.training.program_words import list_program_words
from hebbes.training.run_folder import find_first_seed_folder, read_seeds
from hebbes.training.trainers import TRAINERS, find_trainer
from hebbes.training.unused_options import check_typed_options, format_as_yaml


def _list_flags(owner: type[TrainConfig], strategy: str) -> set[str]:
    """The options of a run with this strategy."""
    return {*map_flags(owner), *map_flags(find_class("strategy", strategy).Settings)}


def _make_parser(owner: type[TrainConfig], description: str, strategy: str) -> OneLineParser:
    parser = OneLineParser(strategy, description=description)
    add_options(parser, owner, "run")
    with convert_errors("strategy", strategy):  # its settings may clash with the options of every run
        add_options(parser, find_class("strategy", strategy).Settings, f"strategy {strategy}")
    parser.add_argument("--print_config", action="store_true", help="print the resolved options as YAML and exit")
    return parser


def _find_deciding_flags(arguments: Sequence[str]) -> dict[str, Any]:
    """The given flags that decide which files are read, and which strategy's flags exist."""
    probe = OneLineParser(add_help=False)
    for name in ("environment", "preset", "config", "strategy", "resume"):
        probe.add_argument(f"--{name}", default=SUPPRESS)
    probe.add_argument("--import", nargs="*", default=SUPPRESS)
    return vars(probe.parse_known_args([replace_dashes(argument) for argument in arguments])[0])


def parse_configs(trainer: str, arguments: Sequence[str], description: str) -> list[TrainConfig]:
    """The config of a new run, or of the saved run that `--resume` names, in a list of one.

    Where `--resume` names the runs of several seeds, it is the config of the first that began, with the first seed and
    the number of seeds.

    Ends the program with status 0 after `--help` and `--print_config`, and with status 2 if one option is wrong.
    Raises ValueError if options do not fit together.
    """
    named = _find_deciding_flags(arguments)
    if "resume" not in named:
        return [parse_config(trainer, arguments, description)]
    folder = Path(named["resume"])
    seeds = read_seeds(folder)
    seed_options = {} if seeds is None else {"seed": seeds.start, "seeds": seeds.stop - seeds.start}
    first = folder if seeds is None else find_first_seed_folder(folder, seeds)
    imports = named.get("import", ())
    config = _make_resumed_config(TRAINERS[trainer], first, imports, arguments, description, seed_options)
    return [replace(config, resume=str(folder))]


def parse_config(trainer: str, arguments: Sequence[str], description: str) -> TrainConfig:
    """The config of a new run; ends the program and raises as `parse_configs` does."""
    owner, named = TRAINERS[trainer], _find_deciding_flags(arguments)
    if not {"-h", "--help"}.isdisjoint(arguments):
        _make_parser(owner, description, named.get("strategy", TrainConfig.strategy)).parse(arguments)
    from_file = rename_classes(read_yaml(Path(named["config"]))) if "config" in named else {}
    defaults = {"environment": TrainConfig.environment, "strategy": TrainConfig.strategy}
    chosen = {**_find_deciding_flags(format_arguments(from_file)), **named}
    resolved = resolve({**defaults, **chosen}["environment"], chosen.get("import", ()))
    preset = find_preset(trainer, resolved.environment, chosen.get("preset"))
    from_preset = read_yaml(preset) if preset else {}
    intended = {**defaults, **_find_deciding_flags(format_arguments(from_preset))}["strategy"]
    from_preset = rename_options(from_preset, _list_flags(owner, intended))
    strategy = chosen.get("strategy", intended)
    # values tuned for one strategy mean something else to another
    others = (*map_flags(find_class("strategy", intended).Settings), *GROWTH) if strategy != intended else ()
    left_out = {name: from_preset.pop(name) for name in others if name in from_preset}

    parser = _make_parser(owner, description, strategy)
    shared = read_shared_options(resolved.environment, map_flags(owner))
    options = parser.parse(format_arguments(shared), f"shared preset of {resolved.environment}")
    options |= parser.parse(format_arguments(from_preset), str(preset))
    check_names(from_file, _list_flags(owner, strategy), f"{named.get('config')}: ")
    options |= parser.parse(format_arguments(from_file), str(named.get("config")))
    given = parser.parse(arguments)
    options |= given
    options["environment"] = resolved.environment
    options["import"] = tuple(dict.fromkeys((*options.get("import", ()), *resolved.imports)))
    options["env_kwargs"] = {**resolved.env_kwargs, **options.get("env_kwargs", {})}
    print_only = options.pop("print_config")
    config = replace(_make_config(owner, options), typed=frozenset(given))
    check_typed_options(config)
    if print_only:
        _print_and_exit(config)
    omission = f"{preset}: left out {', '.join(left_out)}, tuned for strategy {intended}" if left_out else ""
    for notice in filter(None, (resolved.notice, omission, *_describe_replaced_wrappers(shared, config))):
        print(notice, file=sys.stderr)
    return config


def _describe_replaced_wrappers(shared: Mapping[str, Any], config: TrainConfig) -> Iterator[str]:
    """A notice if the config has other wrappers than the shared preset, which has those that the environment needs."""
    name = "gymnasium_wrappers"
    if name in shared and shared[name] != config.as_options()[name]:
        replaced = yaml.safe_dump(shared[name], default_flow_style=True, width=inf).strip()
        yield f"{name} replaces the shared preset's {replaced}: name these too if you want to keep them"


def _print_and_exit(config: TrainConfig) -> NoReturn:
    """Prints the resolved options and ends the program."""
    print_or_exit(format_as_yaml(config).rstrip())
    sys.exit(0)


def _make_config(owner: type[TrainConfig], options: Mapping[str, Any]) -> TrainConfig:
    """The config with these options, which are given by flag."""
    strategy = options.get("strategy", TrainConfig.strategy)
    settings_class = find_class("strategy", strategy).Settings
    settings = {attribute: options[flag] for flag, attribute in map_flags(settings_class).items() if flag in options}
    own = {attribute: options[flag] for flag, attribute in map_flags(owner).items() if flag in options}
    with convert_errors("strategy", strategy):
        strategy_settings = settings_class(**settings)
    return owner(**own, settings=strategy_settings)


def _make_resumed_config(
    owner: type[TrainConfig],
    folder: Path,
    imports: Sequence[str],
    arguments: Sequence[str],
    description: str,
    seed_options: Mapping[str, int],
) -> TrainConfig:
    """The config of the run in a folder, with the given flags, if they may change, and `seed_options`."""
    saved = {**VALUES_IN_OLD_CHECKPOINTS, **load_newest_checkpoint(folder / CHECKPOINTS)[0].config, **seed_options}
    saved_options = rename_classes({name: convert_value(value) for name, value in saved.items()})
    try:
        check_allowed(find_users_modules(saved_options), imports)
    except KeyError as error:
        raise ValueError(f"the run in {folder} lacks the option {error}") from error
    except ValueError as error:
        raise ValueError(f"the run in {folder} {error}") from error
    if owner is not TRAINERS[maker := find_trainer(saved_options)]:
        program = shlex.join(list_program_words(f"train_{maker}"))
        raise ValueError(f"the run in {folder} was made by {program}; resume it with that")
    strategy = saved_options["strategy"]
    known = _list_flags(owner, strategy) - NOT_SAVED
    saved_options = rename_options(saved_options, known)
    if unknown := sorted(saved_options.keys() - known):
        raise ValueError(f"the run in {folder} has the option {unknown[0]}, which this program does not know")
    if new := sorted(known - saved_options.keys()):
        print(f"{folder}: the run was saved without {', '.join(new)}; using the defaults", file=sys.stderr)
    given = rename_classes(_make_parser(owner, description, strategy).parse(arguments))
    print_only = given.pop("print_config")
    for name, value in given.items():
        if name in NOT_SAVED - {"resume"}:
            raise ValueError(f"{name} cannot be given when a run is resumed: its options come from {folder}")
        if name not in CHANGEABLE and value != saved_options.get(name):
            expected = f"{saved_options.get(name)!r} in {folder}"
            raise ValueError(f"{name} cannot change when a run is resumed: it is {expected}, got {value!r}")
    config = _make_config(owner, {**saved_options, **given, "import": saved_options["import"], "resume": str(folder)})
    if print_only:
        _print_and_exit(config)
    return config
