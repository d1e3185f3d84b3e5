"""Owners of options: the parts of a run, each of which declares its options in a dataclass.

Some owners are parts of every run, such as the engine. Others are chosen: one policy, any wrappers and loggers, and one
method where the trainer has one, such as a strategy. An option is named by itself, `sigma`, where no other part of the
run has an option of this name, and always together with its owner, `openai_es.sigma`. No chosen part may have an
option with the name of one that every run has.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import Field, dataclass, field, make_dataclass, replace
from functools import cache
from typing import Any

from hebbes.contracts.option import (
    check_declarations,
    get_default,
    get_flag_name,
    get_hints,
    list_options,
    option,
    split_hint,
)
from hebbes.contracts.trainer import Trainer
from hebbes.environments.environment_options import EnvironmentOptions
from hebbes.environments.part_spec import Entry, PartSpec, make_part_spec
from hebbes.execution.engine_options import EngineOptions
from hebbes.files.option_file import COMMAND_LINE_ONLY, MEASURED
from hebbes.registry.former_names import find_current_option_name
from hebbes.registry.lookup import find_class, list_names
from hebbes.registry.tables import SIMULATOR_WRAPPERS
from hebbes.registry.users_classes import convert_errors
from hebbes.training.run_options import RunOptions
from hebbes.training.training_options import TrainingOptions

AUTO = "auto"
AUTO_POLICIES = ("mlp", "cnn")
"""The policies that `--policy auto` can stand for."""

FIXED = ("environment", "trainer", "training", "run", "engine")
"""Kinds of the owners that are parts of every run."""

SEVERAL = ("wrapper", "logger")
"""Kinds of which a run may have several."""

INCIDENTAL = ("run", "engine", "logger")
"""Kinds of the owners whose options say how and where a run runs, not what it trains."""


@dataclass(frozen=True)
class Owner:
    """A part of a run, and the dataclasses in which it declares its options."""

    kind: str
    """One of `FIXED`, a kind of `hebbes.registry.tables.TABLES`, or that of a program with options of its own."""
    name: str
    """The word before the dot in `--owner.option`."""
    declared: tuple[type, ...] = field(repr=False)
    defaults: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)
    """Field of an option -> its default, where the trainer has another than the part itself."""

    @property
    def slot(self) -> str:
        """The place in a run that it takes. At most one owner of a slot is in a run."""
        return f"{self.kind} {self.name}" if self.kind in SEVERAL else self.kind

    @property
    def title(self) -> str:
        """What messages call it."""
        return self.name if self.kind in (*FIXED, self.name) else f"{self.kind} {self.name}"

    @property
    def options(self) -> list["OwnedOption"]:
        """Its options."""
        return [OwnedOption(self, each, field_) for each in self.declared for field_ in list_options(each)]


@dataclass(frozen=True, eq=False)
class OwnedOption:
    """An option with its owner."""

    owner: Owner
    declared_in: type
    field: Field

    @property
    def key(self) -> str:
        """Names the option among those of a run, however it is spelled: its slot and the field's name."""
        return f"{self.owner.slot}.{self.field.name}"

    @property
    def hint(self) -> tuple[Any, bool, bool]:
        """The type of its items, whether it is a list of them, and whether None is allowed."""
        return split_hint(get_hints(self.declared_in)[self.field.name])

    @property
    def is_saved(self) -> bool:
        """Whether files of a run keep it."""
        return self.field.metadata.get("saved", True)

    @property
    def short_name(self) -> str:
        """Its name without its owner."""
        return get_flag_name(self.field)

    @property
    def full_name(self) -> str:
        """Its name with its owner."""
        return f"{self.owner.name}.{self.field.name}"

    @property
    def default(self) -> Any:
        """The value of an option that nothing sets."""
        return self.owner.defaults.get(self.field.name, get_default(self.field))


@cache
def find_owner(kind: str, name: str) -> Owner:
    """The owner that an option names, such as `find_owner("strategy", "openai_es")`; ValueError if there is none."""
    found = find_class(kind, name)
    with convert_errors(kind, name):
        declared = [getattr(found, "Settings", found)]
        check_declarations(declared[0])
        if switch := getattr(found, "switch", ""):
            declared.insert(0, make_dataclass(f"{found.__name__}Switch", [(name, bool, option(False, switch))]))
    return Owner(kind, name.rpartition(":")[2], tuple(declared))


@dataclass(frozen=True)
class Choices:
    """The names that decide which owners a run has."""

    trainer: str
    policy: str
    method: str = ""
    """A class of the trainer's `method_kind`, such as a strategy; empty if it needs none."""
    wrappers: tuple[Entry, ...] = ()
    loggers: tuple[Entry, ...] = ()


def find_trainer(name: str) -> type[Trainer]:
    """The class of a trainer."""
    return find_class("trainer", name)


def choose_parts(trainer: str, options: Any) -> Choices:
    """The policy and the method that the options of a trainer name, or by default, if `options` is their dataclass."""
    return Choices(trainer, options.policy, getattr(options, find_trainer(trainer).method_kind, ""))


def list_part_kinds(trainer: str) -> list[str]:
    """The kinds of the parts that the options of a trainer name."""
    return [*filter(None, [find_trainer(trainer).method_kind]), "policy"]


def list_fixed_owners(trainer: str) -> list[Owner]:
    """The owners that every run of a trainer has."""
    found = find_trainer(trainer)
    names = ["environment", found.owner, "training", "run", "engine"]
    declared: list[type] = [EnvironmentOptions, found.Options, TrainingOptions, RunOptions, EngineOptions]
    return [Owner(kind, name, (each,)) for kind, name, each in zip(FIXED, names, declared, strict=True)]


def list_chosen_owners(choices: Choices) -> list[Owner]:
    """The method, the policy (for `auto` those that it can stand for), and all wrappers and loggers.

    Wrappers and loggers of ours are put on by their options, so they are always listed. A user's own are listed if they
    are named, and no other in the list has the same name: arguments in the list are for one of several alone.
    """
    policies = AUTO_POLICIES if choices.policy == AUTO else (choices.policy,)
    methods = [choices.method] if choices.method else []
    return [
        *(find_owner(find_trainer(choices.trainer).method_kind, method) for method in methods),
        *(find_owner("policy", policy) for policy in policies),
        *_list_several("wrapper", choices.wrappers),
        *_list_several("logger", choices.loggers),
    ]


def list_owners(choices: Choices) -> list[Owner]:
    """The owners of a run: those that every run has, and the chosen ones, with the defaults of trainer and method.

    ValueError if a chosen one has an option with the name of one that every run has.
    """
    fixed, chosen = list_fixed_owners(choices.trainer), list_chosen_owners(choices)
    _check_names(fixed, chosen)
    defaults = _find_defaults(choices)
    return [_change_defaults(owner, defaults) for owner in (*fixed, *chosen)]


def _find_defaults(choices: Choices) -> dict[str, Any]:
    """The defaults that the trainer and the method have for options of other parts."""
    found = find_trainer(choices.trainer)
    method = find_class(found.method_kind, choices.method) if choices.method else None
    return {**found.defaults, **getattr(method, "defaults", {})}


def _check_names(fixed: Iterable[Owner], chosen: Iterable[Owner]) -> None:
    owned = {name: name for name in COMMAND_LINE_ONLY}
    owned |= {each.short_name: each.full_name for owner in fixed for each in owner.options}
    taken = {name: f"every run has an option of this name, --{other}" for name, other in owned.items()}
    taken[MEASURED] = "files of options keep a score under it"
    for owner in chosen:
        for each in owner.options:
            if reason := taken.get(each.short_name):
                raise ValueError(f"{owner.title}: its option {each.short_name} needs another name, because {reason}")


def _change_defaults(owner: Owner, defaults: Mapping[str, Any]) -> Owner:
    if owner.kind in SEVERAL:  # a user's own may have options of these names
        return owner
    own = {each.field.name for each in owner.options}
    return replace(owner, defaults={name: value for name, value in defaults.items() if name in own})


def _list_several(kind: str, entries: Sequence[Entry]) -> list[Owner]:
    names = [make_part_spec(entry).name for entry in entries]
    for unknown in (name for name in names if ":" not in name and name not in list_names(kind)):
        find_class(kind, unknown)  # raises ValueError, with a suggestion
    last_words = [name.rpartition(":")[2] for name in names]
    theirs = [name for name, word in zip(names, last_words, strict=True) if ":" in name and last_words.count(word) == 1]
    ours = [name for name in list_names(kind) if name not in SIMULATOR_WRAPPERS]
    found = {name: owner for name in (*ours, *theirs) if (owner := find_owner(kind, name)).options}
    for name, owner in found.items():
        if same := [other for other in found if other != name and found[other].name == owner.name]:
            raise ValueError(f"{kind}s {name!r} and {same[0]!r} have one name and options: rename one of the classes")
    return list(found.values())


def list_all_owners(trainer: str) -> list[Owner]:
    """Every owner of ours that a run could have, with the defaults of the default method."""
    found = find_trainer(trainer)
    allowed = {each.name: each.metadata.get("choices") for each in list_options(found.Options)}
    parts = [find_owner(kind, name) for kind in list_part_kinds(trainer) for name in allowed[kind] or list_names(kind)]
    several = [owner for kind in SEVERAL for owner in _list_several(kind, ())]
    defaults = _find_defaults(choose_parts(trainer, found.Options))
    return [_change_defaults(each, defaults) for each in (*list_fixed_owners(trainer), *parts, *several)]


def list_trainers_with(name: str) -> list[str]:
    """Our trainers whose runs can have an option of this name, which may be a short or a former one."""
    named = {trainer: name_options(list_all_owners(trainer)) for trainer in list_names("trainer")}
    return [trainer for trainer, options in named.items() if find_current_option_name(name, options) in options]


def name_options(owners: Iterable[Owner]) -> dict[str, list[OwnedOption]]:
    """Each name, with and without the owner -> the options that it may mean.

    Several options in one slot are one option, as those of the policies that `auto` can stand for.
    """
    named: dict[str, list[OwnedOption]] = {}
    for each in (each for owner in owners for each in owner.options):
        named.setdefault(each.full_name, []).append(each)
        named.setdefault(each.short_name, []).append(each)
    return named


def choose_names(options: Sequence[OwnedOption]) -> dict[str, str]:
    """Key of each option -> the name under which a file of a run has it: the short one, where that means only it.

    Those of a user's logger have their full one, which tells without the class that they are no part of the method.
    """
    named = name_options(dict.fromkeys(each.owner for each in options))
    names = {}
    for each in options:
        is_clear = {other.key for other in named[each.short_name]} == {each.key}
        is_of_users_logger = each.owner.kind == "logger" and each.owner.name not in list_names("logger")
        names[each.key] = each.short_name if is_clear and not is_of_users_logger else each.full_name
    return names


def shorten_names(trainer: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Options from a file with the short names of those that every run has; ValueError if one is given twice."""
    known = {each.full_name: each.short_name for owner in list_fixed_owners(trainer) for each in owner.options}
    shortened: dict[str, Any] = {}
    for name, value in options.items():
        current = find_current_option_name(name, known)
        short = known.get(current, name)
        if short in shortened:
            raise ValueError(f"{short} is given twice, as {name} too")
        shortened[short] = value
    return shortened


def find_part_owner(owners: Iterable[Owner], spec: PartSpec, kind: str) -> Owner | None:
    """The owner of the options of a wrapper or logger in a list; None if it has none."""
    return next((each for each in owners if each.kind == kind and each.name == spec.name.rpartition(":")[2]), None)
