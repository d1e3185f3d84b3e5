"""The command line: flags over `--config` over presets over defaults, checked before anything starts."""

import sys
from argparse import SUPPRESS
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from math import inf
from pathlib import Path
from typing import Any, NoReturn

import yaml

from hebbes.contracts.option import flags_of
from hebbes.environments.ids import resolve
from hebbes.files.checkpoint import FOLDER as CHECKPOINTS
from hebbes.files.checkpoint import newest_checkpoint
from hebbes.files.option_file import read_yaml
from hebbes.options.flags import OneLineParser, add_options, as_arguments, plain, underscored
from hebbes.options.presets import preset_path, shared_options
from hebbes.recording.standard_output import print_all
from hebbes.registry.lookup import check_allowed, lookup
from hebbes.registry.users_classes import naming
from hebbes.training.config import CHANGEABLE, FORMERLY, GROWTH, NOT_SAVED, TrainConfig, modules_named
from hebbes.training.run_folder import first_begun, seeds_in
from hebbes.training.trainers import TRAINERS, trainer_of
from hebbes.training.unused_options import as_yaml, check_used


def _parser(owner: type[TrainConfig], description: str, strategy: str) -> OneLineParser:
    parser = OneLineParser(strategy, description=description)
    add_options(parser, owner, "run")
    with naming("strategy", strategy):  # whose settings may clash with the options of every run
        add_options(parser, lookup("strategy", strategy).Settings, f"strategy {strategy}")
    parser.add_argument("--print_config", action="store_true", help="print the resolved options as YAML and exit")
    return parser


def _named(arguments: Sequence[str]) -> dict[str, Any]:
    """The flags given that decide which files are read and which strategy's flags there are."""
    probe = OneLineParser(add_help=False)
    for name in ("environment", "preset", "config", "strategy", "resume"):
        probe.add_argument(f"--{name}", default=SUPPRESS)
    probe.add_argument("--import", nargs="*", default=SUPPRESS)
    return vars(probe.parse_known_args([underscored(argument) for argument in arguments])[0])


def parse_configs(trainer: str, arguments: Sequence[str], description: str) -> list[TrainConfig]:
    """The config that the command line asks for, or that with which the run in a folder goes on.

    For the runs of several seeds it is that of the first that began, with the seed and the number of them all.

    Ends the program with status 0 after `--help` and `--print_config`, and with status 2 after a mistake in one option;
    ValueError says what does not fit together.
    """
    named = _named(arguments)
    if "resume" not in named:
        return [parse_config(trainer, arguments, description)]
    folder = Path(named["resume"])
    seeds = seeds_in(folder)
    of_all = {} if seeds is None else {"seed": seeds.start, "seeds": seeds.stop - seeds.start}
    begun = folder if seeds is None else first_begun(folder, seeds)
    config = _resumed_config(TRAINERS[trainer], begun, named.get("import", ()), arguments, description, of_all)
    return [replace(config, resume=str(folder))]


def parse_config(trainer: str, arguments: Sequence[str], description: str) -> TrainConfig:
    """The config of a new run, as `parse_configs` gives it."""
    owner, named = TRAINERS[trainer], _named(arguments)
    if not {"-h", "--help"}.isdisjoint(arguments):
        _parser(owner, description, named.get("strategy", TrainConfig.strategy)).parse(arguments)
    from_file = read_yaml(Path(named["config"])) if "config" in named else {}
    defaults = {"environment": TrainConfig.environment, "strategy": TrainConfig.strategy}
    chosen = {**_named(as_arguments(from_file)), **named}
    resolved = resolve({**defaults, **chosen}["environment"], chosen.get("import", ()))
    preset = preset_path(trainer, resolved.environment, chosen.get("preset"))
    from_preset = read_yaml(preset) if preset else {}
    intended = {**defaults, **_named(as_arguments(from_preset))}["strategy"]
    strategy = chosen.get("strategy", intended)
    # what was tuned for one strategy means something else to another
    others = (*flags_of(lookup("strategy", intended).Settings), *GROWTH) if strategy != intended else ()
    left_out = {name: from_preset.pop(name) for name in others if name in from_preset}

    parser = _parser(owner, description, strategy)
    shared = shared_options(resolved.environment, flags_of(owner))
    options = parser.parse(as_arguments(shared), f"shared preset of {resolved.environment}")
    options |= parser.parse(as_arguments(from_preset), str(preset))
    options |= parser.parse(as_arguments(from_file), str(named.get("config")))
    given = parser.parse(arguments)
    options |= given
    options["environment"] = resolved.environment
    options["import"] = tuple(dict.fromkeys((*options.get("import", ()), *resolved.imports)))
    options["env_kwargs"] = {**resolved.env_kwargs, **options.get("env_kwargs", {})}
    print_only = options.pop("print_config")
    config = replace(_config(owner, options), typed=frozenset(given))
    check_used(config)
    if print_only:
        _show(config)
    omission = f"{preset}: left out {', '.join(left_out)}, made for strategy {intended}" if left_out else ""
    for notice in filter(None, (resolved.notice, omission, *_replaced(shared, config))):
        print(notice, file=sys.stderr)
    return config


def _replaced(shared: Mapping[str, Any], config: TrainConfig) -> Iterator[str]:
    """A line where other wrappers have taken the place of the shared preset's, which are the environment's own."""
    name = "gymnasium_wrappers"
    if name in shared and shared[name] != config.as_options()[name]:
        gone = yaml.safe_dump(shared[name], default_flow_style=True, width=inf).strip()
        yield f"{name} takes the place of the shared preset's {gone}: name them too, if they are to stay"


def _show(config: TrainConfig) -> NoReturn:
    """Prints the options instead of running them."""
    print_all(as_yaml(config).rstrip())
    sys.exit(0)


def _config(owner: type[TrainConfig], options: Mapping[str, Any]) -> TrainConfig:
    """The config with these options, under the names of their flags."""
    strategy = options.get("strategy", TrainConfig.strategy)
    settings_class = lookup("strategy", strategy).Settings
    settings = {attribute: options[flag] for flag, attribute in flags_of(settings_class).items() if flag in options}
    own = {attribute: options[flag] for flag, attribute in flags_of(owner).items() if flag in options}
    with naming("strategy", strategy):
        made = settings_class(**settings)
    return owner(**own, settings=made)


def _resumed_config(
    owner: type[TrainConfig],
    folder: Path,
    imports: Sequence[str],
    arguments: Sequence[str],
    description: str,
    of_all: Mapping[str, int],
) -> TrainConfig:
    """The config of the run in a folder, with the flags that may change when it goes on, and the options `of_all`."""
    saved = {**FORMERLY, **newest_checkpoint(folder / CHECKPOINTS)[0].config, **of_all}
    then = {name: plain(value) for name, value in saved.items()}
    try:
        check_allowed(modules_named(then), imports)
    except KeyError as error:
        raise ValueError(f"the run in {folder} lacks the option {error}") from error
    except ValueError as error:
        raise ValueError(f"the run in {folder} {error}") from error
    if owner is not TRAINERS[maker := trainer_of(then)]:
        raise ValueError(f"the run in {folder} was made by train_{maker}.py; resume it with that")
    strategy = then["strategy"]
    known = {*flags_of(owner), *flags_of(lookup("strategy", strategy).Settings)} - NOT_SAVED
    if unknown := sorted(then.keys() - known):
        raise ValueError(f"the run in {folder} has the option {unknown[0]}, which this program does not know")
    if new := sorted(known - then.keys()):
        print(f"{folder}: the run knows nothing of {', '.join(new)}; the defaults are taken", file=sys.stderr)
    given = _parser(owner, description, strategy).parse(arguments)
    print_only = given.pop("print_config")
    for name, value in given.items():
        if name in NOT_SAVED - {"resume"}:
            raise ValueError(f"{name} cannot be given when a run goes on: its options come from {folder}")
        if name not in CHANGEABLE and value != then.get(name):
            raise ValueError(
                f"{name} cannot change when a run goes on: it is {then.get(name)!r} in {folder}, got {value!r}"
            )
    config = _config(owner, {**then, **given, "import": then["import"], "resume": str(folder)})
    if print_only:
        _show(config)
    return config
