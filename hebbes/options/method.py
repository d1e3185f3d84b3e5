"""The method of a run: its options without those that say only how and where it runs. A label tells methods apart.

Runs that differ in nothing but seed, folder, budget, engine, loggers and printing are runs of one method.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any, TypeAlias

from hebbes.contracts.option import find_unused_options, get_default, get_flag_name, list_options
from hebbes.options.texts import format_options
from hebbes.registry.former_names import rename_options
from hebbes.registry.lookup import list_names
from hebbes.training.owners import INCIDENTAL, OwnedOption, find_trainer, list_all_owners, name_options

START = "init_from"
"""The one option of an incidental owner that belongs to the method: where the search starts."""

Method: TypeAlias = Mapping[str, str]
"""The options of a method as texts, by name."""


def find_method(options: Mapping[str, Any]) -> Method:
    """The method of a run with these options, by the names under which its files have them."""
    options = rename_options(options, _map_options())
    loggers = _list_loggers(options)
    return {
        name: " ".join(values)
        for name, values in format_options(options)
        if name.rpartition(".")[0] not in loggers and _belongs(name, values, options)
    }


def _list_loggers(options: Mapping[str, Any]) -> set[str]:
    """The class names of the loggers. The options may be those of a file that makes no sense."""
    listed = options.get("loggers")
    entries = listed if isinstance(listed, list | tuple) else ()
    names = [next(iter(each), "") if isinstance(each, Mapping) else each for each in entries]
    return {name.rpartition(":")[2] for name in names if isinstance(name, str)} - {""}


def _belongs(name: str, values: Sequence[str], options: Mapping[str, Any]) -> bool:
    """Whether an option is part of the method. One without effect is not: policy files lack it."""
    if name == START:
        return values != ["none"]
    found = _map_options().get(name, [])
    is_incidental = [each.owner.kind in INCIDENTAL or each.field.metadata.get("changeable") for each in found]
    chosen = [each for each in found if options.get(each.owner.kind, each.owner.name) == each.owner.name]
    is_unused = bool(chosen) and all(_is_unused(each, options) for each in chosen)
    return not found or not (all(is_incidental) or is_unused)


def _is_unused(option: OwnedOption, options: Mapping[str, Any]) -> bool:
    """Whether an option has no effect next to the others."""
    declared = list_options(option.declared_in)
    values = {each.name: options.get(get_flag_name(each), get_default(each)) for each in declared}
    return option.field.name in find_unused_options(option.declared_in, values)


def has_default(name: str, value: Any) -> bool:
    """Whether this value, or the text of it, is the default of all options of ours that the name may mean."""
    ((_, texts),) = format_options({name: value})
    return _list_defaults(name) == {" ".join(texts)}


@cache
def _list_defaults(name: str) -> set[str]:
    return {
        " ".join(texts) for each in _map_options().get(name, []) for _, texts in format_options({name: each.default})
    }


@cache
def _map_options() -> Mapping[str, list[OwnedOption]]:
    """Each name of an option of ours -> the options that it may mean."""
    return name_options(dict.fromkeys(owner for name in list_names("trainer") for owner in list_all_owners(name)))


def _find_name(method: Method) -> str:
    """The name of what searches, such as "cem", or of the policy if nothing else is known."""
    kinds = [*filter(None, (find_trainer(each).method_kind for each in list_names("trainer"))), "policy"]
    return next((method[kind] for kind in kinds if kind in method), "unknown")


def group_by_method(methods: Sequence[Method]) -> dict[str, list[int]]:
    """Label of each method -> its positions in the sequence, in the order of the first ones.

    A label is the name of what searches, and the options in which methods of this name differ. An option with its
    default is as if it were not there, because files of earlier versions lack those that are newer.
    """
    positions: dict[tuple[str, frozenset[tuple[str, str]]], list[int]] = {}
    for position, method in enumerate(methods):
        changed = frozenset((name, text) for name, text in method.items() if not has_default(name, text))
        positions.setdefault((_find_name(method), changed), []).append(position)
    distinct = [methods[first] for first, *_ in positions.values()]
    return dict(zip(_label_methods(distinct), positions.values(), strict=True))


def _label_methods(methods: Sequence[Method]) -> Iterator[str]:
    """The labels of different methods."""
    for method in methods:
        others = [other for other in methods if _find_name(other) == _find_name(method)]
        # what another lacks is left out where a value tells the two apart: the options of another policy, say
        unlike = [other for other in others if all(other.get(name, text) == text for name, text in method.items())]
        differing = [
            f"{name}={text or 'none'}"
            for name, text in sorted(method.items())
            if any(other.get(name, text) != text for other in others) or any(name not in other for other in unlike)
        ]
        yield " ".join([_find_name(method), *differing])
