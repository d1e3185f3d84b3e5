"""YAML as the toolkit reads and writes it: plain values, no aliases, and 1e-3 is a number."""

import re
from math import inf, isfinite
from typing import Any, Self

import yaml

_PATTERNS = {
    "tag:yaml.org,2002:int": (re.compile(r"[-+]?[0-9]+$"), "-+0123456789"),
    "tag:yaml.org,2002:float": (
        re.compile(
            r"""[-+]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][-+]?[0-9]+)?$
            |[-+]?\.(inf|Inf|INF)$
            |\.(nan|NaN|NAN)$""",
            re.VERBOSE,
        ),
        "-+.0123456789",
    ),
    "tag:yaml.org,2002:bool": (re.compile("(true|True|TRUE|false|False|FALSE)$"), "tTfF"),
}
"""Numbers and booleans as YAML 1.2 writes them, and the characters with which they begin.

PyYAML follows YAML 1.1, in which 1e-3 is a text, 010 is 8, 1:30 is 90, and yes, no, on and off are booleans.
"""


class _Loader(yaml.SafeLoader):
    """PyYAML's safe loader, without aliases (a few can expand to gigabytes) and repeated keys (YAML uses the last one).

    All that it raises says in which line.
    """

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        if self.check_event(yaml.AliasEvent):
            raise yaml.MarkedYAMLError(None, None, "aliases (*name) are refused here", self.peek_event().start_mark)
        return super().compose_node(parent, index)

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        try:
            return super().construct_object(node, deep)
        except (ValueError, LookupError, ArithmeticError, AttributeError) as error:  # of dates and tagged values
            raise yaml.MarkedYAMLError(None, None, "not a value of its type", node.start_mark) from error

    def compose_mapping_node(self, anchor: Any) -> yaml.MappingNode:
        node = super().compose_mapping_node(anchor)
        seen = set()
        for key in [key for key, _ in node.value if isinstance(key, yaml.ScalarNode)]:
            if key.value in seen:
                raise yaml.MarkedYAMLError(None, None, f"{key.value} given more than once", key.start_mark)
            seen.add(key.value)
        return node

    def construct_yaml_int(self, node: yaml.ScalarNode) -> int:
        text = self.construct_scalar(node)
        number = int(text)
        return number if str(number) == text else _Integer(number).with_source(text)

    def construct_yaml_float(self, node: yaml.ScalarNode) -> float:
        text, number = self.construct_scalar(node), super().construct_yaml_float(node)
        is_word = not text[-1].isdigit() and not isfinite(number)  # .inf
        return number if is_word or str(number) == text else _Number(number).with_source(text)


class _WithSource:
    """A number that is still the text of its source where a text is needed: a run may be called 007 or 1.10."""

    _source: str

    def with_source(self, source: str) -> Self:
        self._source = source
        return self

    def __str__(self) -> str:
        return self._source


class _Integer(_WithSource, int):
    pass


class _Number(_WithSource, float):
    pass


class _Dumper(yaml.SafeDumper):
    """PyYAML's safe dumper, without aliases. It quotes texts that `_Loader` or PyYAML would take for something else."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


_Loader.yaml_implicit_resolvers = {
    character: [(tag, pattern) for tag, pattern in entries if tag not in _PATTERNS]
    for character, entries in _Loader.yaml_implicit_resolvers.items()
}
for _tag, (_pattern, _first) in _PATTERNS.items():
    _Loader.add_implicit_resolver(_tag, _pattern, list(_first))
    _Dumper.add_implicit_resolver(_tag, _pattern, list(_first))
_Loader.add_constructor("tag:yaml.org,2002:int", _Loader.construct_yaml_int)
_Loader.add_constructor("tag:yaml.org,2002:float", _Loader.construct_yaml_float)
_Dumper.add_representer(_Integer, lambda dumper, number: dumper.represent_int(int(number)))
_Dumper.add_representer(_Number, _Dumper.represent_float)


def parse_yaml(text: str) -> Any:
    """The value of a text in YAML. Raises yaml.YAMLError, or RecursionError if it is nested too deeply."""
    return _Loader(text).get_single_data()


def format_yaml(value: Any) -> str:
    """The value as YAML in block style, the keys of mappings in their order, with a line break at the end."""
    return str(yaml.dump(value, Dumper=_Dumper, sort_keys=False, width=inf))


def format_yaml_line(value: Any) -> str:
    """The value as YAML in a single line, as one types it on a command line. yaml.YAMLError if it has other types."""
    return str(yaml.dump(value, Dumper=_Dumper, default_flow_style=True, width=inf)).strip()
