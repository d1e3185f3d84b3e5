"""The command line: flags over `--config` over preset over defaults, checked before anything starts.

argparse rather than a library that fills dataclasses, because it can return the flags given and no others: precedence
is then one merge of dictionaries, and the keys of a YAML file are checked by turning them into flags.
"""

import difflib
import sys
from argparse import SUPPRESS, Action, ArgumentError, ArgumentParser
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, Field, fields
from pathlib import Path
from types import NoneType
from typing import Any, NoReturn, get_args, get_origin, get_type_hints

import yaml

from rollouts.environment_ids import resolve
from rollouts.registry import check_allowed, did_you_mean, lookup, names
from training.checkpoint import FOLDER as CHECKPOINTS
from training.checkpoint import newest_checkpoint
from training.config import CHANGEABLE, NOT_SAVED, TRAINERS, TrainConfig, flag_name, modules_named, trainer_of
from training.option_file import read_yaml
from training.run_folder import runs_in
from training.unused_options import check_used

CONFIGS = Path(__file__).resolve().parent.parent / "configs"


class OneLineParser(ArgumentParser):
    """Reports a mistake in one line, suggests the nearest flag, and exits with status 2."""

    def __init__(self, strategy: str = "", **settings: Any):
        super().__init__(allow_abbrev=False, **settings)
        self.source, self.strategy = "", strategy

    def error(self, message: str) -> NoReturn:
        """Prints one line and exits."""
        self.exit(2, f"{self.prog}: error: {self.source}{' '.join(message.split())}\n")

    def _check_value(self, action: Action, value: Any) -> None:
        if action.choices is not None and value not in action.choices:
            allowed = list(map(str, action.choices))
            hint = did_you_mean(str(value), allowed) or ","
            raise ArgumentError(action, f"got {value!r}{hint} allowed: {', '.join(allowed)}")

    def parse(self, arguments: Sequence[str], source: str = "") -> dict[str, Any]:
        """The options given, by name; `--max-env-steps` is read as `--max_env_steps`."""
        self.source = f"{source}: " if source else ""
        found, unknown = self.parse_known_args([_underscored(argument) for argument in arguments])
        if unknown:
            self.error(self._about(unknown[0]))
        self.source = ""
        return {name: _plain(value) for name, value in vars(found).items()}

    def _about(self, unknown: str) -> str:
        """What is wrong with an option that this parser does not have: it is another strategy's, or nobody's."""
        flag = unknown.split("=")[0]
        name = flag.removeprefix("--").removeprefix("no_")
        owners = [each for each in names("strategies") if name in _flags(lookup("strategies", each).Settings)]
        if self.strategy and owners:
            return f"{name} is no option of strategy {self.strategy}; it belongs to {', '.join(owners)}"
        flags = [flag for action in self._actions for flag in action.option_strings]
        near = difflib.get_close_matches(flag, flags, 1)
        return f"unknown option {unknown}" + (f", did you mean {near[0]}?" if near else "")


def _plain(value: Any) -> Any:
    """A list as a tuple; a list of nothing but `none` as None."""
    if isinstance(value, list):
        return None if value == [None] else tuple(value)
    return value


def _underscored(argument: str) -> str:
    flag, equals, value = argument.partition("=")
    return "--" + flag[2:].replace("-", "_") + equals + value if flag.startswith("--") else argument


def _reader(kind: type, optional: bool) -> Any:
    """Reads one value from text; `none` where the option may be left unset."""

    def read(text: str) -> Any:
        if optional and text.lower() == "none":
            return None
        if kind is not dict:
            return kind(text)
        try:
            value = yaml.safe_load(text)
        except yaml.YAMLError as error:
            raise ValueError(text) from error
        if not isinstance(value, dict):
            raise ValueError(text)
        return value

    read.__name__ = "mapping" if kind is dict else kind.__name__  # argparse puts it into its message
    return read


def _default_text(option: Field) -> str:
    default = option.default if option.default is not MISSING else None
    if isinstance(default, bool):
        return f" (default: {'on' if default else 'off'}; --no_{flag_name(option)} turns it off)"
    if default in (None, (), ""):
        return ""
    return f" (default: {' '.join(map(str, default)) if isinstance(default, tuple) else default})"


class _SplitAtCommas(Action):
    """Takes `a,b c` for `a b c`; `const` reads each part."""

    def __call__(self, parser: Any, namespace: Any, values: Any, option_string: Any = None) -> None:
        setattr(namespace, self.dest, [self.const(part) for text in values for part in text.split(",")])


def _add_option(group: Any, option: Field, hint: Any, may_be_empty: bool) -> Action:
    flag = flag_name(option)
    text = (option.metadata["help"] + _default_text(option)).replace("%", "%%")
    common: dict[str, Any] = {"dest": flag, "default": SUPPRESS}
    if read_part := option.metadata.get("commas"):
        common |= {"action": _SplitAtCommas, "const": read_part}
    if hint is bool:
        group.add_argument(f"--no_{flag}", action="store_false", help=SUPPRESS, **common)
        return group.add_argument(f"--{flag}", action="store_true", help=text, **common)
    optional = NoneType in get_args(hint)
    given = next(kind for kind in get_args(hint) if kind is not NoneType) if optional else hint
    is_list, is_mapping = get_origin(given) is tuple, get_origin(given) is Mapping
    kind = dict if is_mapping else get_args(given)[0] if is_list else given
    return group.add_argument(
        f"--{flag}",
        type=_reader(kind, optional),
        nargs=("*" if may_be_empty or optional else "+") if is_list else None,
        choices=option.metadata.get("choices") or None,
        metavar=None if option.metadata.get("choices") else flag.upper(),
        help=text,
        **common,
    )


def add_options(parser: ArgumentParser, owner: type, title: str, *, may_be_empty: bool = True) -> None:
    """A flag for every field of a dataclass that has a help text; whether lists that have a default may be empty."""
    group, hints = parser.add_argument_group(title), get_type_hints(owner)
    for option in fields(owner):
        if "help" in option.metadata:
            _add_option(group, option, hints[option.name], may_be_empty)


def as_arguments(options: Mapping[str, Any]) -> list[str]:
    """Options from YAML as the flags that say the same."""
    arguments: list[str] = []
    for name, value in options.items():
        if isinstance(value, bool):
            arguments.append(f"--{name}" if value else f"--no_{name}")
        elif isinstance(value, list):
            arguments += [f"--{name}", *map(str, value)]
        elif isinstance(value, dict):
            arguments.append(f"--{name}={yaml.safe_dump(value, default_flow_style=True)}")
        else:
            arguments.append(f"--{name}={'none' if value is None else value}")
    return arguments


def preset_path(trainer: str, environment: str, variant: str | None) -> Path | None:
    """The preset of an environment, None if it has none; ValueError for a variant that does not exist."""
    stem = environment.replace("/", "_")
    path = CONFIGS / trainer / (f"{stem}.{variant}.yaml" if variant else f"{stem}.yaml")
    if path.exists():
        return path
    if variant:
        found = sorted(p.name.removesuffix(".yaml")[len(stem) + 1 :] for p in path.parent.glob(f"{stem}.*.yaml"))
        known = f"preset must be one of {', '.join(found) or '(none)'} for {environment}"
        raise ValueError(f"{known}, got {variant!r}{did_you_mean(variant, found)}")
    return None


def _parser(owner: type[TrainConfig], description: str, strategy: str) -> OneLineParser:
    parser = OneLineParser(strategy, description=description)
    add_options(parser, owner, "run")
    add_options(parser, lookup("strategies", strategy).Settings, f"strategy {strategy}")
    parser.add_argument("--print_config", action="store_true", help="print the resolved options as YAML and exit")
    return parser


def _named(arguments: Sequence[str]) -> dict[str, Any]:
    """The flags given that decide which files are read and which strategy's flags there are."""
    probe = OneLineParser(add_help=False)
    for name in ("environment", "preset", "config", "strategy", "resume"):
        probe.add_argument(f"--{name}", default=SUPPRESS)
    probe.add_argument("--import", nargs="*", default=SUPPRESS)
    return vars(probe.parse_known_args([_underscored(argument) for argument in arguments])[0])


def parse_configs(trainer: str, arguments: Sequence[str], description: str) -> list[TrainConfig]:
    """The config that the command line asks for, or that of each run that it resumes.

    Ends the program with status 0 after `--help` and `--print_config`, and with status 2 after a mistake in one option;
    ValueError says what does not fit together.
    """
    named = _named(arguments)
    if "resume" not in named:
        return [parse_config(trainer, arguments, description)]
    folders = runs_in(Path(named["resume"]))
    owner, imports = TRAINERS[trainer], named.get("import", ())
    return [_resumed_config(owner, folder, imports, arguments, description) for folder in folders]


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
    others = _flags(lookup("strategies", intended).Settings) if strategy != intended else {}
    left_out = {name: from_preset.pop(name) for name in others if name in from_preset}

    parser = _parser(owner, description, strategy)
    options = parser.parse(as_arguments(from_preset), str(preset))
    in_file = parser.parse(as_arguments(from_file), str(named.get("config")))
    given = parser.parse(arguments)
    options |= in_file | given
    options["environment"] = resolved.environment
    options["env_kwargs"] = {**resolved.env_kwargs, **options.get("env_kwargs", {})}
    print_only = options.pop("print_config")
    config = _config(owner, options)
    check_used(config, given)
    if print_only:
        _show(config)
    omission = f"{preset}: left out {', '.join(left_out)}, settings of strategy {intended}" if left_out else ""
    for notice in filter(None, (resolved.notice, omission)):
        print(notice, file=sys.stderr)
    return config


def _show(config: TrainConfig) -> NoReturn:
    """Prints the options instead of running them."""
    print(config.as_yaml(), end="")
    sys.exit(0)


def _config(owner: type[TrainConfig], options: Mapping[str, Any]) -> TrainConfig:
    """The config with these options, under the names of their flags."""
    settings_class = lookup("strategies", options.get("strategy", TrainConfig.strategy)).Settings
    settings = {attribute: options[flag] for flag, attribute in _flags(settings_class).items() if flag in options}
    own = {attribute: options[flag] for flag, attribute in _flags(owner).items() if flag in options}
    return owner(**own, settings=settings_class(**settings))


def _resumed_config(
    owner: type[TrainConfig], folder: Path, imports: Sequence[str], arguments: Sequence[str], description: str
) -> TrainConfig:
    """The config of the run in a folder, with the flags that may change when it goes on."""
    then = {name: _plain(value) for name, value in newest_checkpoint(folder / CHECKPOINTS)[0].config.items()}
    try:
        check_allowed(modules_named(then), imports)
    except KeyError as error:
        raise ValueError(f"the run in {folder} lacks the option {error}") from error
    except ValueError as error:
        raise ValueError(f"the run in {folder} {error}") from error
    if owner is not TRAINERS[maker := trainer_of(then)]:
        raise ValueError(f"the run in {folder} was made by train_{maker}.py; resume it with that")
    strategy = then["strategy"]
    known = {*_flags(owner), *_flags(lookup("strategies", strategy).Settings)} - NOT_SAVED
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


def parse_options(owner: type, arguments: Sequence[str], description: str) -> dict[str, Any]:
    """The fields of a dataclass of options that the command line gives."""
    parser = OneLineParser(description=description)
    add_options(parser, owner, "options", may_be_empty=False)
    given = parser.parse(arguments)
    return {attribute: given[flag] for flag, attribute in _flags(owner).items() if flag in given}


def _flags(owner: type) -> dict[str, str]:
    """Flag -> attribute, of every option of a dataclass."""
    return {flag_name(option): option.name for option in fields(owner) if "help" in option.metadata}
