"""TrainConfig: the options of a training run, by owner."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from hebbes.contracts.option import find_unused_options
from hebbes.contracts.plain_values import make_list
from hebbes.contracts.yaml_text import format_yaml
from hebbes.environments.environment_options import EnvironmentOptions
from hebbes.environments.part_spec import PartSpec, make_part_spec
from hebbes.execution.engine_options import EngineOptions
from hebbes.registry.lookup import list_names, list_users_modules
from hebbes.registry.users_classes import convert_errors
from hebbes.training.owners import (
    FIXED,
    Choices,
    OwnedOption,
    Owner,
    choose_names,
    choose_parts,
    find_owner,
    find_part_owner,
    find_trainer,
    list_owners,
    list_part_kinds,
)
from hebbes.training.run_options import NO_PRESET, RunOptions
from hebbes.training.training_options import TrainingOptions


@dataclass(frozen=True)
class TrainConfig:
    """The options of a run. Made by `make_config`."""

    trainer: str
    """A key of `hebbes.registry.tables.TRAINERS`."""
    environment: EnvironmentOptions
    trainer_options: Any
    """The trainer's own `Options`."""
    training: TrainingOptions
    run: RunOptions
    engine: EngineOptions
    settings: Any = None
    """The own `Settings` of the trainer's method, such as a strategy; None if it has none."""
    given: Mapping[str, Any] = field(default_factory=dict)
    """The options of the policy, the wrappers and the loggers that something sets, by `OwnedOption.key`."""
    typed: frozenset[str] = field(default=frozenset(), compare=False)
    """Keys of the options that somebody typed. They must have an effect, see `check_typed_options`."""

    @property
    def owners(self) -> list[Owner]:
        """The parts of the run, and all wrappers and loggers that options could put on."""
        return list_owners(self.choices)

    @property
    def options(self) -> list[OwnedOption]:
        """All their options."""
        return [each for owner in self.owners for each in owner.options]

    @property
    def choices(self) -> Choices:
        """The names that decide which owners the run has."""
        parts = choose_parts(self.trainer, self.trainer_options)
        return replace(parts, wrappers=self.environment.wrappers, loggers=self.run.loggers)

    @property
    def values(self) -> dict[str, Any]:
        """The value of every option by key."""
        parts = {"environment": self.environment, "trainer": self.trainer_options, "training": self.training}
        parts |= {"run": self.run, "engine": self.engine, find_trainer(self.trainer).method_kind: self.settings}
        return {
            each.key: getattr(parts[each.owner.kind], each.field.name)
            if each.owner.kind in parts
            else self.given.get(each.key, each.default)
            for each in self.options
        }

    @property
    def policy_options(self) -> dict[str, Any]:
        """The options of the policy that something sets, by field."""
        return {key.removeprefix("policy."): value for key, value in self.given.items() if key.startswith("policy.")}

    def list_put_on(self, kind: str) -> list[PartSpec]:
        """The wrappers or loggers of ours that options put on, those whose options make them do something."""
        unused, ours = self.find_unused(), list_names(kind)  # a user's own is put on by its name
        owners = [owner for owner in self.owners if owner.kind == kind and owner.name in ours]
        return [spec for owner in owners if (spec := self._find_put_on(owner, unused)) is not None]

    def list_named(self, kind: str) -> list[PartSpec]:
        """The wrappers or loggers in the list that names them, with their options."""
        owners, specs = self.owners, []
        for entry in self.environment.wrappers if kind == "wrapper" else self.run.loggers:
            spec = make_part_spec(entry)
            owner = find_part_owner(owners, spec, kind)
            options = [] if owner is None else [each for each in owner.options if each.field.name != owner.name]
            given = {each.field.name: make_list(self.given[each.key]) for each in options if each.key in self.given}
            specs.append(replace(spec, kwargs={**given, **spec.kwargs}))
        return specs

    def list_loggers(self) -> list[PartSpec]:
        """The loggers that options put on, and those that are named."""
        return [*self.list_put_on("logger"), *self.list_named("logger")]

    def _find_put_on(self, owner: Owner, unused: Collection[str]) -> PartSpec | None:
        used = [each for each in owner.options if each.key not in unused]
        values = {each.field.name: self.given.get(each.key, each.default) for each in used}
        if all(values[each.field.name] == each.default for each in used):
            return None
        return PartSpec(owner.name, {name: make_list(value) for name, value in values.items() if name != owner.name})

    @property
    def trusted_modules(self) -> list[str]:
        """Modules of the user's own code that these options name. A file of the run may import them too."""
        return find_users_modules(self.trainer, self.as_options())

    @property
    def modules_of_members(self) -> tuple[str, ...]:
        """Those of `trusted_modules` that have a part in evaluating members. Loggers have none."""
        return tuple(find_users_modules(self.trainer, {**self.as_options(), "loggers": ()}))

    def as_options(self) -> dict[str, Any]:
        """Values by name in plain types, without the options that say where options are read from."""
        return dict(self._plain_options)

    @cached_property
    def _plain_options(self) -> dict[str, Any]:
        """Those of `as_options`, which every checkpoint has, found once."""
        options, values = self.options, self.values
        names, saved = choose_names(options), [each for each in options if each.is_saved]
        return {names[each.key]: make_list(values[each.key]) for each in saved}

    def find_unused(self) -> dict[str, str]:
        """Key of each option that this run does not use -> text on the options with which it would.

        An option of a policy counts as used as long as one of the policies that `auto` can stand for uses it.
        """
        values, unused, used = self.values, {}, set()
        for owner in self.owners:
            own = {each.field.name: values[each.key] for each in owner.options}
            reasons = {name: text for each in owner.declared for name, text in find_unused_options(each, own).items()}
            for each in owner.options:
                if each.field.name in reasons:
                    unused[each.key] = reasons[each.field.name]
                else:
                    used.add(each.key)
        return {key: text for key, text in unused.items() if key not in used}

    def check_typed_options(self) -> None:
        """ValueError for an option that was typed and has no effect in this run, unless it has its default value."""
        unused, values = self.find_unused(), self.values
        for each in self.options:
            if each.key not in self.typed or values[each.key] == each.default:
                continue
            if each.key in unused:
                raise ValueError(f"--{each.short_name} is only used with {unused[each.key]}")
            if each.field.metadata.get("only_start") and self.run.init_from is not None:
                raise ValueError(f"--{each.short_name} is not used with --init_from, whose file has the weights")

    def list_used_options(self, *, without: Collection[str] = ()) -> dict[str, Any]:
        """Those of `as_options` that this run uses, without those of some kinds of owners."""
        names, unused = choose_names(self.options), self.find_unused()
        left_out = {names[each.key] for each in self.options if each.key in unused or each.owner.kind in without}
        return {name: value for name, value in self.as_options().items() if name not in left_out}

    def format_as_yaml(self) -> str:
        """YAML text of the options that this run uses, by name, which `--config` can read.

        It turns presets off, so that a later change of a preset does not change the run.
        """
        return format_yaml({"preset": NO_PRESET, **self.list_used_options()})

    def change(self, **groups: Mapping[str, Any]) -> "TrainConfig":
        """The config with other values, as in `config.change(run={"seed": 3})`."""
        return replace(self, **{name: replace(getattr(self, name), **values) for name, values in groups.items()})

    def with_policy(self, policy: str) -> "TrainConfig":
        """The config with the policy that `auto` stands for; ValueError if it lacks an option that was typed."""
        chosen = find_owner("policy", policy)
        known = {each.key for each in chosen.options}
        for each in self.options:
            if each.owner.kind == "policy" and each.key in self.typed and each.key not in known:
                raise ValueError(f"--{each.short_name} is an option of policy {each.owner.name}")
        given = {key: value for key, value in self.given.items() if not key.startswith("policy.") or key in known}
        resolved = replace(self.change(trainer_options={"policy": policy}), given=given)
        resolved.check_typed_options()
        return resolved


def make_config(choices: Choices, values: Mapping[str, Any], typed: frozenset[str]) -> TrainConfig:
    """The config with these values, given by `OwnedOption.key`; ValueError if they do not fit together."""

    owners, kind = list_owners(choices), find_trainer(choices.trainer).method_kind
    defaults = {
        each.key: each.default for owner in owners for each in owner.options if each.field.name in owner.defaults
    }
    values = {**defaults, **values}

    def make_options(owner: Owner) -> Any:
        return owner.declared[0](**{each.field.name: values[each.key] for each in owner.options if each.key in values})

    parts = {owner.kind: make_options(owner) for owner in owners if owner.kind in FIXED}
    parts["trainer_options"], settings = parts.pop("trainer"), None
    for owner in owners:
        if owner.kind == kind:
            with convert_errors(kind, choices.method):
                settings = make_options(owner)
    keys = {each.key for owner in owners if owner.kind not in (*FIXED, kind) for each in owner.options}
    given = {key: value for key, value in values.items() if key in keys}
    return TrainConfig(choices.trainer, **parts, settings=settings, given=given, typed=typed)


def find_users_modules(trainer: str, options: Mapping[str, Any]) -> list[str]:
    """Names of the user's own modules in options: packages to import, and those of `module:Class`.

    The options are given by name, those of every run by their short names. Some may be absent.
    """
    lists = (options.get(name, ()) for name in ("gymnasium_wrappers", "wrappers", "loggers"))
    parts = [make_part_spec(entry).name for entries in lists for entry in entries]
    named = [*(options.get(name, "") for name in ("environment", *list_part_kinds(trainer))), *parts]
    return [*options.get("import", ()), *list_users_modules(named)]
