"""OptionReader: finds the options that names stand for, and reads their values from texts."""

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import Any

from hebbes.options.suggestions import suggest_options
from hebbes.options.texts import GivenOption, read_texts
from hebbes.registry.former_names import FORMER_OPTIONS, SHORT_OPTIONS, find_current_option_name
from hebbes.training.owners import SEVERAL, OwnedOption, Owner, list_trainers_with, name_options


class OptionReader:
    """Reads the options of some owners, and explains why others cannot be given."""

    def __init__(
        self,
        owners: Iterable[Owner],
        find_others: Callable[[], Iterable[Owner]] = tuple,
        *,
        file: str = "",
        may_be_empty: bool = True,
    ):
        """`find_others` returns owners that could have been chosen. `may_be_empty` is as in `read_texts`.

        `file` is the file that the options are from; empty for the command line.
        """
        self.notices: dict[str, None] = {}
        self._named, self._find_others = name_options(owners), find_others
        self._file, self._may_be_empty = file, may_be_empty

    @cached_property
    def _others(self) -> dict[str, list[OwnedOption]]:
        return name_options(self._find_others())

    def read(self, given: Sequence[GivenOption]) -> dict[str, Any]:
        """The values by `OwnedOption.key`; ValueError for the first mistake.

        The last value counts, where an option is given twice under one name. Two names of it are a mistake, except for
        an option of a wrapper or logger, and in a file that has the default under one of them: files of earlier
        versions hold all options.
        """
        values: dict[str, Any] = {}
        names: dict[str, str] = {}
        for name, texts in given:
            option, is_off = self.find(name)
            value = self._read_value(option, texts, is_off)
            bare = name.removeprefix("no_") if is_off else name
            if option.key in names and self._leaves_out(option, (names[option.key], values[option.key]), (bare, value)):
                continue
            values[option.key], names[option.key] = value, bare
        return values

    def _leaves_out(self, option: OwnedOption, before: tuple[str, Any], now: tuple[str, Any]) -> bool:
        """Whether the second of two names and values of an option is left out; ValueError if they are a mistake."""
        (first, old), (second, new) = before, now
        is_listed = "." in first or "." in second
        if self._file and is_listed:
            is_mistake = option.default not in (old, new)
        else:
            may_be_listed = is_listed and option.owner.kind in SEVERAL
            is_mistake = not may_be_listed and (bool(self._file) or first != second)
        if is_mistake:
            other = second if first == option.short_name else first
            raise ValueError(f"{option.short_name} is given twice, as {other} too")
        return bool(self._file) and is_listed and new == option.default

    def knows(self, name: str) -> bool:
        """Whether one of the owners has an option of this name."""
        return find_current_option_name(name, self._named) in self._named

    def find(self, name: str) -> tuple[OwnedOption, bool]:
        """The option that a name stands for, and whether the name turns it off; ValueError if there is none."""
        current = self._find_current_name(name)
        if current in self._named:
            return self._choose_one(current), False
        if name.startswith("no_") and (current := self._find_current_name(name[3:])) in self._named:
            option = self._choose_one(current)
            if _is_switch(option):
                return option, True
        raise ValueError(self._explain_unknown(name))

    def _read_value(self, option: OwnedOption, texts: Sequence[str], is_off: bool) -> Any:
        if is_off:
            if texts:
                raise ValueError(f"no_{option.short_name} takes no value, got {' '.join(texts)}")
            return False
        is_unique = {each.key for each in self._named[option.short_name]} == {option.key}
        name = option.short_name if is_unique else option.full_name
        return read_texts(option, texts, name=name, may_be_empty=self._may_be_empty)

    def _find_current_name(self, name: str) -> str:
        """The current name of an option; a notice says so if it has a former one."""
        current = find_current_option_name(name, self._named)
        if name in FORMER_OPTIONS and current != name:
            self.notices[f"{f'{self._file}: ' if self._file else ''}--{name} is now called --{current}"] = None
        return current

    def _choose_one(self, name: str) -> OwnedOption:
        """The only option of a name. Policies that `auto` can stand for share theirs."""
        options = self._named[name]
        if len({each.key for each in options}) > 1:
            owners = " and ".join(each.owner.title for each in options)
            full_names = " or ".join(f"--{each.full_name}" for each in options)
            raise ValueError(f"{name} is an option of {owners}: give {full_names}")
        return options[0]

    def _explain_unknown(self, name: str) -> str:
        """Why this reader does not have an option: an owner that was not chosen has it, or it does not exist."""
        bare = name.removeprefix("no_")
        if self.knows(bare):
            return f"unknown option --{name}: {bare} is not an on/off option"
        others = self._others.get(find_current_option_name(bare, self._others), ())
        kinds = {each.owner.kind for each in others}
        if chosen := self._list_names_of(kinds):
            owners = ", ".join(dict.fromkeys(each.owner.name for each in others))
            return f"{bare} is not an option of {' '.join(kinds)} {' or '.join(chosen)}; it belongs to {owners}"
        names = [each for each in self._named if "." not in each or "." in name]
        names += [f"no_{each}" for each, options in self._named.items() if _is_switch(options[0])]
        names += [each for each, ours in {**FORMER_OPTIONS, **SHORT_OPTIONS}.items() if ours in self._named]
        meant = dict.fromkeys(f"--{FORMER_OPTIONS.get(each, each)}" for each in suggest_options(name, names))
        if meant:
            return f"unknown option --{name}, did you mean {' or '.join(meant)}?"
        programs = ", ".join(f"train_{trainer}" for trainer in list_trainers_with(bare))
        return f"unknown option --{name}" + (f"; it belongs to {programs}" if programs else "")

    def _list_names_of(self, kinds: Iterable[str]) -> list[str]:
        """The names of this reader's owners of some kinds."""
        found = (each.owner for options in self._named.values() for each in options)
        return list(dict.fromkeys(owner.name for owner in found if owner.kind in kinds))


def _is_switch(option: OwnedOption) -> bool:
    return option.hint[0] is bool
