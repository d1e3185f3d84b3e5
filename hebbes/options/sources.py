"""Sources of options: presets, a config file, the command line. A later one overrides those before it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hebbes.contracts.errors import prefix_errors
from hebbes.environments.part_spec import Entry, PartSpec, make_part_spec, read_part
from hebbes.options.option_reader import OptionReader
from hebbes.options.texts import GivenOption, format_options
from hebbes.registry.lookup import list_names
from hebbes.training.owners import (
    Choices,
    Owner,
    choose_parts,
    find_part_owner,
    find_trainer,
    list_all_owners,
    list_owners,
    list_part_kinds,
)

DECIDING = {
    **{f"{owner}{name}": name for name in ("preset", "config", "resume", "loggers") for owner in ("", "run.")},
    "environment": "environment",
    "environment.id": "environment",
    "import": "import",
    "environment.imports": "import",
    "wrappers": "wrappers",
    "environment.wrappers": "wrappers",
}
"""Names of the options that decide which files are read and which other options exist -> the short name. Those of a
trainer that name its parts come to these."""

LISTS_OF_PARTS = {"wrappers": "wrapper", "loggers": "logger"}
"""Those that name parts of a run -> the kind of part."""

LISTS = ("import", *LISTS_OF_PARTS)
"""Those that are lists."""


@dataclass(frozen=True)
class Source:
    """Options from one place."""

    name: str
    """A file, for messages; empty for the command line."""
    given: Sequence[GivenOption]
    is_lenient: bool = False
    """Whether options of owners that are not chosen are skipped without a word."""
    is_saved: bool = False
    """Whether it is a checkpoint, whose lists of wrappers and loggers stay as they are."""


def find_deciding_options(trainer: str, given: Sequence[GivenOption]) -> dict[str, Any]:
    """The options that decide what else is read, by short name, as texts; lists of texts for those that are lists."""
    owners = "", f"{find_trainer(trainer).owner}."
    deciding = DECIDING | {f"{owner}{kind}": kind for kind in list_part_kinds(trainer) for owner in owners}
    found: dict[str, Any] = {}
    for name, texts in given:
        short = deciding.get(name)
        if short in LISTS:
            found[short] = texts
        elif short is not None and texts:
            if len(texts) > 1:
                raise ValueError(f"{short} takes one value, got {' '.join(texts)}")
            if short in ("config", "resume") and texts[0] == "":
                raise ValueError(f"{short} must be a path, got ''")
            found[short] = texts[0]
    return found


def read_entries(option: str, texts: Sequence[str]) -> tuple[Entry, ...]:
    """The wrappers or loggers in a list; ValueError that names the option."""
    found = []
    for text in texts:
        try:
            found.append(read_part(text))
        except ValueError as error:
            raise ValueError(f"{option}: {error}; got {text!r}") from error
    return tuple(found)


class SourceReader:
    """Reads sources one after another, and follows what they choose.

    The options of a source must belong to what it chooses, or to what the sources before it chose. Where a later source
    chooses something else, options of what it replaces are left out, and a notice says so.
    """

    def __init__(self, trainer: str):
        self.choices = choose_parts(trainer, find_trainer(trainer).Options)
        self.values: dict[str, Any] = {}
        """The value of every option that a source has set, by `OwnedOption.key`."""
        self.typed: frozenset[str] = frozenset()
        """Keys of the options of the command line."""
        self.notices: list[str] = []
        self._trainer = trainer
        self._sources: dict[str, Source] = {}
        self._listed: dict[str, list[str]] = {}

    @property
    def owners(self) -> list[Owner]:
        """The owners that the sources so far have chosen, and those of every run."""
        return list_owners(self.choices)

    def read(self, source: Source) -> None:
        """Reads a source; ValueError for the first mistake in it."""
        with prefix_errors(f"{source.name}: " if source.name else ""):
            self._read(source)

    def _read(self, source: Source) -> None:
        named = find_deciding_options(self._trainer, source.given)
        before, self.choices = self.choices, self.follow_choices(named)
        owners = self.owners
        self._leave_out_replaced(before, owners)
        reader = OptionReader(owners, lambda: list_all_owners(self._trainer), file=source.name)
        given = [each for each in source.given if reader.knows(each[0])] if source.is_lenient else source.given
        spread, given = ([], given) if source.is_saved else _spread_entries(given, owners)
        self._replace_listed(reader, named, spread)
        values = reader.read([*spread, *given])
        self.values |= values
        if not source.is_saved:
            self._check_put_on(named, owners)
        self._sources |= dict.fromkeys(values, source)
        self.notices += reader.notices
        if not source.name:
            self.typed = frozenset(values)

    def follow_choices(self, named: Mapping[str, Any]) -> Choices:
        """The choices of the sources so far, with those that another one's deciding options name.

        ValueError for a mistake in its lists.
        """
        entries = {name: read_entries(name, named[name]) for name in LISTS_OF_PARTS if name in named}
        return Choices(
            self._trainer,
            named.get("policy", self.choices.policy),
            named.get(find_trainer(self._trainer).method_kind, self.choices.method),
            entries.get("wrappers", self.choices.wrappers),
            entries.get("loggers", self.choices.loggers),
        )

    def _leave_out_replaced(self, before: Choices, owners: Sequence[Owner]) -> None:
        """Drops options that the run does not have any more.

        Of another method, such as a strategy, these are all: values tuned for one mean something else to another.
        """
        known = {each.key for owner in owners for each in owner.options}
        trainer, other = find_trainer(self._trainer), self.choices.method != before.method
        kind, tuned = trainer.method_kind, {f"trainer.{name}" for name in trainer.tuned_with_method}
        dropped: dict[str, list[str]] = {}
        for key in list(self.values):
            was_tuned = other and (key.startswith(f"{kind}.") or key in tuned)
            if was_tuned or key not in known:
                del self.values[key]
                source = self._sources[key]
                if not source.is_lenient:
                    why = f"tuned for {kind} {before.method}" if was_tuned else self._explain_lack(key)
                    dropped.setdefault(f"{source.name}: left out {{}}, {why}", []).append(key.rpartition(".")[2])
        self.notices += [text.format(", ".join(names)) for text, names in dropped.items()]

    def _explain_lack(self, key: str) -> str:
        is_policys = key.startswith("policy.")
        return f"which policy {self.choices.policy} does not have" if is_policys else "of parts that are not listed"

    def _check_put_on(self, named: Mapping[str, Any], owners: Sequence[Owner]) -> None:
        """ValueError if a source lists a wrapper or logger of ours that no option puts on."""
        for name, kind in LISTS_OF_PARTS.items():
            for spec in map(make_part_spec, read_entries(name, named.get(name, ()))):
                owner = find_part_owner(owners, spec, kind)
                if owner is None or spec.name not in list_names(kind):
                    continue
                if not any(each.key in self.values for each in owner.options):
                    needed = owner.options[0].field.name
                    example = f"'{spec.name}: {{{needed}: ...}}'"
                    raise ValueError(f"{name}: {spec.name} does nothing without {needed}, as in {example}")

    def _replace_listed(self, reader: OptionReader, named: Mapping[str, Any], spread: Sequence[GivenOption]) -> None:
        """Drops the arguments in a list of wrappers or loggers, where a source has another list."""
        keys = [reader.find(name)[0].key for name, _ in spread]
        for name in LISTS_OF_PARTS.keys() & named.keys():
            for key in self._listed.get(name, ()):
                self.values.pop(key, None)
            self._listed[name] = [key for key in keys if key.startswith(f"{LISTS_OF_PARTS[name]} ")]


def _spread_entries(
    given: Sequence[GivenOption], owners: Sequence[Owner]
) -> tuple[list[GivenOption], list[GivenOption]]:
    """Arguments in lists of wrappers and loggers as options of their own; all options with what is left of the lists.

    A wrapper of ours with options leaves its list: its options put it on. Of lists of one name the last one counts.
    """
    spread: list[GivenOption] = []
    rest: list[GivenOption] = []
    last = {name: place for place, (name, _) in enumerate(given)}
    for place, (name, texts) in enumerate(given):
        kind = LISTS_OF_PARTS.get(DECIDING.get(name, ""))
        if kind is None:
            rest.append((name, texts))
            continue
        if place < last[name]:
            continue
        specs, kept = [make_part_spec(entry) for entry in read_entries(name, texts)], []
        for spec in specs:
            owner = find_part_owner(owners, spec, kind)
            if owner is None:
                kept.append(spec)
            elif [each.name for each in specs].count(spec.name) > 1:
                raise ValueError(f"{name}: {spec.name} is named twice")
            else:
                spread += _spread_arguments(owner, spec)
                kept += [PartSpec(spec.name)] if spec.name not in list_names(kind) else []
        rest += format_options({name: [spec.entry for spec in kept]})
    return spread, rest


def _spread_arguments(owner: Owner, spec: PartSpec) -> list[GivenOption]:
    """The arguments of a wrapper or logger as options."""
    names = {each.field.name for each in owner.options}
    arguments = {f"{owner.name}.{name}": value for name, value in spec.kwargs.items()}
    if owner.name in names:  # its switch
        arguments.setdefault(f"{owner.name}.{owner.name}", True)
    return format_options(arguments)
