"""Descriptions of environments: how they are read from files, and which back end they get."""

import json
from dataclasses import replace

import pytest

from hebbes.environments import make_batch_env as environments
from hebbes.environments.environment_spec import EnvironmentSpec, describe_environment, spec_from_json, spec_to_json
from hebbes.environments.make_batch_env import choose_backend, make_batch_env
from hebbes.environments.part_spec import PartSpec
from hebbes.registry.former_names import find_current_class_name, rename_saved_options

SPEC = EnvironmentSpec(
    environment="AntBulletEnv-v0",
    backend="gymnasium",
    env_kwargs={"render_mode": None, "scale": [1, 2.5]},
    imports=("my_package",),
    gymnasium_wrappers=(PartSpec("hebbes.wrappers.bullet_distance:BulletDistance"),),
    wrappers=(PartSpec("frame_stack", {"frames": 4}), PartSpec("clip_action")),
    training_wrappers=(PartSpec("early_stop", {"negative_streak": 30}),),
)


def test_a_description_survives_json():
    assert spec_from_json(json.loads(json.dumps(spec_to_json(SPEC)))) == SPEC
    assert spec_from_json({"environment": "CartPole-v1", "backend": "envpool"}) == EnvironmentSpec(
        "CartPole-v1", "envpool"
    )


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"environment": 3}, "environment must be a text, got 3"),
        ({"backend": "auto"}, "backend must be one of envpool, gymnasium, got 'auto'"),
        ({"env_kwargs": [1]}, "env_kwargs must be a YAML mapping"),
        ({"imports": "os"}, "imports must be a list of texts, got 'os'"),
        ({"imports": [1]}, "imports must be a list of texts"),
        ({"wrappers": {"name": "x"}}, "wrappers must be a list"),
        ({"wrappers": ["x"]}, r"wrappers must be a list of values, got \['x'\]"),
        ({"wrappers": [{"kwargs": {}}]}, r"wrappers has unknown keys \[\] and lacks \['name'\]"),
        ({"wrappers": [{"name": "x", "extra": 1}]}, r"unknown keys \['extra'\]"),
        ({"training_wrappers": [{"name": 1}]}, "name in training_wrappers must be a text, got 1"),
        ({"gymnasium_wrappers": [{"name": "x", "kwargs": 5}]}, "kwargs in gymnasium_wrappers must be a YAML mapping"),
        ({"surprise": 1}, r"unknown keys \['surprise'\]"),
    ],
)
def test_nonsense_in_a_file_is_refused(change, reason):
    with pytest.raises(ValueError, match=reason):
        spec_from_json({**spec_to_json(SPEC), **change})


@pytest.mark.parametrize(
    ("name", "written", "expected"),
    [
        ("resize", {"height": 84, "width": 40}, {"size": [84, 40]}),
        ("wrappers.resize:Resize", {"height": 84, "width": 40}, {"size": [84, 40]}),
        ("resize", {"size": [84, 40]}, {"size": [84, 40]}),
        ("resize", {"height": 84}, {"height": 84}),
        ("early_stop", {"negative_streak": 9}, {"negative_streak": 9}),
        ("early_stop", {"negative_streak": 9, "grace_steps": 0}, {"negative_streak": 9, "grace_steps": 0}),
        ("early_stop", {"grace_steps": 5}, {"grace_steps": 5, "counts_grace": True}),
        ("hebbes.wrappers.early_stop:EarlyStop", {"grace_steps": 5}, {"grace_steps": 5, "counts_grace": True}),
        ("early_stop", {"grace_steps": 5, "counts_grace": False}, {"grace_steps": 5, "counts_grace": False}),
        ("mine.resize:Resize", {"height": 84, "width": 40}, {"height": 84, "width": 40}),
        ("resize:Resize", {"height": 84, "width": 40}, {"height": 84, "width": 40}),  # a user's own
        ("early_stop:EarlyStop", {"grace_steps": 5}, {"grace_steps": 5}),
    ],
)
def test_arguments_of_earlier_versions_become_todays(name, written, expected):
    plain = {"environment": "CartPole-v1", "backend": "envpool", "wrappers": [{"name": name, "kwargs": written}]}
    (wrapper,) = spec_from_json(plain).wrappers
    assert wrapper.kwargs == expected
    saved = rename_saved_options({"wrappers": [{name: written}]})
    assert saved["wrappers"] == [{find_current_class_name(name): expected}]


def test_tuples_and_lists_in_arguments_are_equal():
    wrappers = (PartSpec("resize", {"size": (8, 4)}), PartSpec("x", {"nested": {"pairs": ((1, 2), [3])}}))
    spec = replace(SPEC, wrappers=wrappers)
    assert spec_from_json(json.loads(json.dumps(spec_to_json(spec)))) == spec
    assert wrappers[1] == PartSpec("x", {"nested": {"pairs": [[1, 2], (3,)]}})


def test_a_description_names_what_returns_depend_on():
    ours, own, settle = (
        PartSpec("grayscale"),
        PartSpec("my_envs:Scale", {"factor": 2}),
        PartSpec("settle", {"num_steps": 3}),
    )
    limit = PartSpec("gymnasium.wrappers:TimeLimit", {"max_episode_steps": 9})
    spec = EnvironmentSpec("CartPole-v1", "gymnasium", wrappers=(ours,), training_wrappers=(own,))
    assert describe_environment(spec) == "CartPole-v1"
    assert describe_environment(replace(spec, wrappers=(settle, ours))) == "CartPole-v1 settle{'num_steps': 3}"
    spec = replace(spec, env_kwargs={"b": 2, "a": 1}, gymnasium_wrappers=(limit,), wrappers=(ours, own))
    wrappers = "gymnasium.wrappers:TimeLimit{'max_episode_steps': 9} my_envs:Scale{'factor': 2}"
    assert describe_environment(spec) == f"CartPole-v1 a=1 b=2 {wrappers}"
    damaged, both = (replace(spec, morphologies=names) for names in (("left",), ("none", "left")))
    assert describe_environment(damaged).endswith(f"{wrappers} morphology left")
    assert describe_environment(both).endswith(f"{wrappers} morphology none morphology left")


@pytest.mark.parametrize("plain", [None, [], {"environment": "CartPole-v1"}])
def test_other_values_are_refused(plain):
    with pytest.raises(ValueError, match="environment description"):
        spec_from_json(plain)


def test_reading_a_description_executes_nothing():
    spec = spec_from_json({"environment": "X-v0", "backend": "gymnasium", "imports": ["no_such_package"]})
    with pytest.raises(ValueError, match="cannot import 'no_such_package'"):
        make_batch_env(spec, [0], threads=1, training=False)


@pytest.mark.parametrize(
    ("name", "env_kwargs", "expected"),
    [
        ("HalfCheetah-v5", {}, "envpool"),
        ("HalfCheetah-v5", {"ctrl_cost_weight": 0.5}, "envpool"),
        ("HalfCheetah-v5", {"xml_file": "mine.xml"}, "gymnasium"),
        ("Ant-v5", {"include_cfrc_ext_in_observation": False}, "gymnasium"),
        ("HalfCheetah-v5", {"num_envs": 3}, "gymnasium"),
        ("LunarLander-v3", {"continuous": True}, "envpool"),
        ("LunarLander-v3", {"gravity": -5.0}, "gymnasium"),
        ("CarRacing-v3", {"continuous": False}, "gymnasium"),
        ("FrozenLake-v1", {"is_slippery": False}, "gymnasium"),
        ("Pong-v5", {"repeat_action_probability": 0.25, "frameskip": 2}, "envpool"),
        ("Pong-v5", {"obs_type": "ram"}, "gymnasium"),
        ("AntBulletEnv-v0", {}, "gymnasium"),
        ("Blackjack-v1", {}, "gymnasium"),
    ],
)
def test_envpool_where_it_can(name, env_kwargs, expected):
    assert choose_backend("auto", name, env_kwargs, ()) == expected
    assert choose_backend("gymnasium", name, env_kwargs, ()) == "gymnasium"
    if expected == "gymnasium":
        with pytest.raises(ValueError, match=f"^backend 'envpool' cannot be used: EnvPool.*{name}"):
            choose_backend("envpool", name, env_kwargs, ())


def test_gymnasium_wrappers_need_gymnasium():
    wrappers = (PartSpec("bullet_distance"),)
    assert choose_backend("auto", "CartPole-v1", {}, wrappers) == "gymnasium"
    with pytest.raises(ValueError, match="gymnasium_wrappers need the Gymnasium back end"):
        choose_backend("envpool", "CartPole-v1", {}, wrappers)


def test_an_unknown_back_end_is_refused():
    with pytest.raises(ValueError, match="backend must be one of auto, envpool, gymnasium, got 'ray'"):
        choose_backend("ray", "CartPole-v1", {}, ())


def test_without_envpool_gymnasium_is_used(monkeypatch):
    monkeypatch.setattr(environments, "find_spec", lambda package: None)
    assert choose_backend("auto", "CartPole-v1", {}, ()) == "gymnasium"
    with pytest.raises(ValueError, match="EnvPool is not installed"):
        choose_backend("envpool", "CartPole-v1", {}, ())
