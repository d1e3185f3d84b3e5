"""Options of environments: what they allow."""

import json

import pytest

from hebbes.contracts.option import get_flag_name, list_options
from hebbes.environments.environment_options import ACTION_BOUNDS, EnvironmentOptions
from hebbes.policies.action_heads import HEADS
from hebbes.registry.tables import WRAPPERS


def test_the_flags_and_defaults():
    options = EnvironmentOptions()
    assert {get_flag_name(each): getattr(options, each.name) for each in list_options(EnvironmentOptions)} == {
        "environment": "CarRacing",
        "backend": "auto",
        "env_kwargs": {},
        "import": (),
        "morphologies": ("none",),
        "action_bounds": "clip",
        "gymnasium_wrappers": (),
        "wrappers": (),
    }
    assert [each.name for each in list_options(EnvironmentOptions) if each.metadata["changeable"]] == ["imports"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"id": 3}, "environment must be a text, got 3"),
        ({"backend": "ray"}, "backend must be one of auto, envpool, gymnasium, got 'ray'"),
        ({"action_bounds": "hope"}, "action_bounds must be one of clip, tanh, rescale, tanh_sigmoid, none, got 'hope'"),
        ({"env_kwargs": [1]}, "env_kwargs must be a YAML mapping"),
        ({"env_kwargs": {"g": float("nan")}}, "env_kwargs must hold finite numbers, texts, lists and mappings"),
        ({"env_kwargs": {"g": {1}}}, "env_kwargs must hold finite numbers, texts, lists and mappings"),
        ({"env_kwargs": {1: 2}}, "env_kwargs must have names for keys, got 1"),
        ({"env_kwargs": {"a": [{"b": {True: 3}}]}}, "env_kwargs must have names for keys, got True"),
        ({"env_kwargs": {"render_mode": "human"}}, "env_kwargs must not hold render_mode"),
        ({"imports": "os"}, "import must be a list of texts, got 'os'"),
        ({"morphologies": ()}, "morphologies must be at least one"),
        ({"morphologies": ("left", "left")}, r"each of them once, got \['left', 'left'\]"),
    ],
)
def test_other_values_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        EnvironmentOptions(**options)


def test_arguments_have_the_order_and_types_that_a_file_gives_back():
    given = {"b": {"y": (1, {"d": 1.5, "c": None}), "x": True}, "a": "12:30"}
    options = EnvironmentOptions(env_kwargs=given)
    assert repr(options.env_kwargs) == "{'a': '12:30', 'b': {'x': True, 'y': [1, {'c': None, 'd': 1.5}]}}"
    assert repr(options.env_kwargs) == repr(json.loads(json.dumps(given, sort_keys=True)))


def test_every_value_of_action_bounds_has_a_head_and_a_wrapper_that_exist():
    assert {head for head, _ in ACTION_BOUNDS.values()} <= set(HEADS)
    assert {wrapper for _, wrapper in ACTION_BOUNDS.values() if wrapper} <= set(WRAPPERS)
