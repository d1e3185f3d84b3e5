"""The options of a training run: flags override `--config`, which overrides presets, which override defaults.

Everything is checked before anything starts.
"""

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

from hebbes.contracts.errors import prefix_errors, say
from hebbes.contracts.yaml_text import format_yaml_line
from hebbes.environments.environment_options import EnvironmentOptions
from hebbes.files.option_file import read_yaml
from hebbes.files.weight_file import POLICY_SUFFIX
from hebbes.files.zoo import PREFIX
from hebbes.options.help import print_help_and_exit
from hebbes.options.presets import find_preset, read_preset, read_shared_options
from hebbes.options.resuming import resume_config
from hebbes.options.sources import Source, SourceReader, find_deciding_options
from hebbes.options.texts import GivenOption, format_options, split_arguments
from hebbes.recording.standard_output import print_or_exit
from hebbes.registry.former_names import MISSING_OPTIONS, rename_classes
from hebbes.registry.lookup import check_allowed
from hebbes.training.config import TrainConfig, find_users_modules, make_config
from hebbes.training.owners import INCIDENTAL, Owner, list_all_owners, list_fixed_owners, list_owners, shorten_names

PRINT_CONFIG = "print_config"
FOOTER = (
    "--print_config            print the resolved options as YAML and exit",
    "--help, --help_all        print this, or the options of all that can be chosen, and exit",
    "",
    "Every option can be given with its owner too: --run.seed. Presets and YAML files: docs/flags.md",
)


def parse_config(trainer: str, arguments: Sequence[str], description: str) -> TrainConfig:
    """The config of a new run, or of the saved run or runs of several seeds that `--resume` names.

    Ends the program with status 0 after `--help`, `--help_all` and `--print_config`. Raises ValueError if an option is
    wrong, or if options do not fit together.
    """
    given = split_arguments(arguments)
    print_help_if_asked(trainer, given, description, footer=FOOTER)
    for name, texts in given:
        if name == PRINT_CONFIG and texts:
            raise ValueError(f"{PRINT_CONFIG} takes no value, got {' '.join(texts)}")
    options = [each for each in given if each[0] != PRINT_CONFIG]
    if len(options) == len(given):
        return resolve_or_resume_config(trainer, options)
    with redirect_stdout(sys.stderr):  # what a user's module prints when it is imported is no YAML
        config = resolve_or_resume_config(trainer, options)
    print_or_exit(config.format_as_yaml().rstrip())
    sys.exit(0)


def resolve_or_resume_config(trainer: str, given: Sequence[GivenOption]) -> TrainConfig:
    """The config of the saved run that `resume` names, or else of a new run."""
    resolve = resume_config if "resume" in find_deciding_options(trainer, given) else resolve_config
    return resolve(trainer, given)


def resolve_config(trainer: str, given: Sequence[GivenOption]) -> TrainConfig:
    """The config of a new run with the given options; ValueError if an option is wrong."""
    named, later = find_deciding_options(trainer, given), [Source("", given)]
    if "config" in named:
        options = _read_option_file(trainer, named["config"], named.get("import", ()))
        file = Source(named["config"], format_options(options))
        with prefix_errors(f"{file.name}: "):
            named = {**find_deciding_options(trainer, file.given), **named}
        later = [file, *later]

    from hebbes.environments.ids import resolve  # imports Gymnasium

    resolved = resolve(named.get("environment", EnvironmentOptions.id), named.get("import", ()))
    preset = find_preset(trainer, resolved.environment, named.get("preset"))
    shared, tuned = read_shared_options(resolved.environment), read_preset(trainer, preset, named)
    earlier = [
        Source(f"shared preset of {resolved.environment}", format_options(shared), is_lenient=True),
        Source(str(preset), format_options(tuned)),
    ]
    reader = SourceReader(trainer)
    for source in (*earlier, *later):
        reader.read(source)
    imports = reader.values.get("environment.imports", ())
    env_kwargs = reader.values.get("environment.env_kwargs", {})
    for name in resolved.env_kwargs.keys() & env_kwargs.keys():
        if env_kwargs[name] != resolved.env_kwargs[name]:
            raise ValueError(
                f"env_kwargs {name} is {resolved.env_kwargs[name]!r} in {named['environment']}, got "
                f"{env_kwargs[name]!r}; --environment {resolved.environment} takes other values"
            )
    values = reader.values | {
        "environment.id": resolved.environment,
        "environment.imports": tuple(dict.fromkeys((*imports, *resolved.imports))),
        "environment.env_kwargs": {**resolved.env_kwargs, **env_kwargs},
    }
    config = make_config(reader.choices, values, reader.typed)
    config.check_typed_options()
    for notice in filter(None, (resolved.notice, *reader.notices, *_describe_replaced({**shared, **tuned}, config))):
        say(notice)
    return config


def _read_option_file(trainer: str, path: str, imports: Sequence[str]) -> dict[str, Any]:
    """The options in a YAML file, or those by which a policy file was trained, without those of the run.

    The user's own modules that a policy file names must be in packages of `imports`.
    """
    if not path.endswith(POLICY_SUFFIX) and not path.startswith(PREFIX):
        return rename_classes(read_yaml(Path(path)))

    from hebbes.files.policy_file import read_policy_file  # imports Gymnasium

    trained = read_policy_file(path, imports).provenance.get("options")
    if not isinstance(trained, dict):
        raise ValueError(f"config {path} does not hold the options of its training")
    owners = [owner for owner in list_fixed_owners(trainer) if owner.kind in INCIDENTAL]
    incidental = {each.short_name for owner in owners for each in owner.options}
    with prefix_errors(f"{path}: "):
        shortened = shorten_names(trainer, trained)
        options = rename_classes({name: value for name, value in shortened.items() if name not in incidental})
        if options.get("early_stop_grace_steps"):
            options = {**MISSING_OPTIONS, **options}
        try:
            check_allowed(find_users_modules(trainer, options), imports)
        except (TypeError, AttributeError) as error:
            raise ValueError(f"its options make no sense: {error}") from error
    return options


def print_help_if_asked(
    trainer: str,
    given: Sequence[GivenOption],
    description: str,
    *,
    own: Sequence[Owner] = (),
    footer: Sequence[str] = (),
) -> None:
    """If the help is among the options, prints that of `own` and of a run, and ends the program with status 0."""
    asked = {name for name, _ in given} & {"help", "help_all"}
    if "help_all" in asked:
        print_help_and_exit(description, [*own, *list_all_owners(trainer)], footer)
    if asked:
        owners = list_owners(SourceReader(trainer).follow_choices(find_deciding_options(trainer, given)))
        print_help_and_exit(description, [*own, *owners], footer)


def _describe_replaced(preset: Mapping[str, Any], config: TrainConfig) -> Iterator[str]:
    """A notice if wrappers or arguments of the environment leave out some of the preset's."""
    for name in ("gymnasium_wrappers", "env_kwargs"):
        ours, theirs = config.as_options()[name], preset.get(name, ())
        if any(each not in ours for each in theirs):
            replaced = format_yaml_line(theirs)
            yield f"{name} replaces the preset's {replaced}: name these too if you want to keep them"
