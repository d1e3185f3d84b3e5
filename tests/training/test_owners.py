"""Every option of every part of the toolkit is declared well, and what a name means does not depend on luck."""

from dataclasses import MISSING, fields
from itertools import chain, product
from math import inf, isfinite, nan, nextafter

import pytest

from hebbes.contracts.option import (
    check_value,
    find_unused_options,
    get_default,
    get_flag_name,
    get_hints,
    list_options,
    parse_range,
    split_hint,
)
from hebbes.options.command_line import parse_config
from hebbes.options.evaluation import EvaluateConfig
from hebbes.options.hebbian_evaluation import HebbianEvaluateConfig
from hebbes.policies.conv_lstm import ConvLSTM
from hebbes.programs.import_reference import ImportConfig
from hebbes.programs.merge import MergeConfig
from hebbes.registry.lookup import find_class, list_names
from hebbes.registry.tables import SIMULATOR_WRAPPERS, TRAINERS
from hebbes.training.owners import (
    Owner,
    choose_names,
    find_owner,
    list_all_owners,
    list_part_kinds,
    name_options,
    shorten_names,
)
from tests.shape_checks import unchecked

PROGRAMS = (EvaluateConfig, HebbianEvaluateConfig, ImportConfig, MergeConfig)
"""Options of the programs that do not train."""

OWNERS = [
    *chain.from_iterable(map(list_all_owners, TRAINERS)),
    *(Owner("options", "options", (each,)) for each in PROGRAMS),
]
OPTIONS = {
    f"{owner.kind} {each.full_name} {each.declared_in.__name__}": each for owner in OWNERS for each in owner.options
}


@pytest.mark.parametrize("option", OPTIONS.values(), ids=OPTIONS)
def test_an_option_is_declared_well(option):
    metadata, default = option.field.metadata, option.default
    kind, _, is_optional = split_hint(get_hints(option.declared_in)[option.field.name])
    assert metadata.get("help", "").strip()
    assert default is not MISSING
    assert check_value(option.declared_in, option.field, default) == default  # within its range and choices
    assert default is not None or is_optional
    if allowed := metadata.get("range"):
        interval = parse_range(allowed)
        assert interval.low < interval.high and kind in (int, float)
    if choices := metadata.get("choices"):
        assert kind is str and len(set(choices)) == len(choices)


def list_wrong_values(option):
    """Values of another type, other names than the choices, and those next to the range, outside it."""
    kind, is_list, _ = split_hint(get_hints(option.declared_in)[option.field.name])
    metadata = option.field.metadata
    wrong = ["odd"] if kind in (int, float, bool, dict) or metadata["choices"] else []
    wrong += [1.5] if kind is str else []
    wrong += [nan, inf, -inf] if kind is float else []
    if metadata["range"]:
        interval = parse_range(metadata["range"])
        low, high = interval.low, interval.high
        below, above = (low - 1, high + 1) if kind is int else (nextafter(low, -inf), nextafter(high, inf))
        bounds = below if interval.has_low else low, above if interval.has_high else high
        wrong += [kind(each) for each in bounds if isfinite(each)]
    return [(each,) if is_list else each for each in wrong]


def construct(found, **options):
    needed = {"observation_shape": (42, 42, 1) if found is ConvLSTM else (84, 84, 3), "num_outputs": 2}
    names = {each.name for each in fields(found)}
    return found(**{name: value for name, value in needed.items() if name in names}, **options)


# those of wrappers and loggers, which need an environment or a folder, have tests of their own
@pytest.mark.parametrize(
    "name", [name for name, each in OPTIONS.items() if each.owner.kind not in ("wrapper", "logger")]
)
def test_its_class_refuses_what_an_option_does_not_allow(name):
    option = OPTIONS[name]
    for wrong in list_wrong_values(option):
        with unchecked(), pytest.raises(ValueError, match=f"^{get_flag_name(option.field)} must be .*, got "):
            construct(option.declared_in, **{option.field.name: wrong})


@pytest.mark.parametrize("option", OPTIONS.values(), ids=OPTIONS)
def test_what_an_option_needs_is_of_its_owner(option):
    known = {each.name: each for each in list_options(option.declared_in)}
    needs = option.field.metadata.get("needs", {})
    for other in needs.keys() & known.keys():
        for value in needs[other]:
            assert check_value(option.declared_in, known[other], value) == value
    assert option.field.name not in needs
    # a base class of strategies may name options that only some of them have
    names_of_its_kind = {
        each.field.name for owner in OWNERS if owner.kind == option.owner.kind for each in owner.options
    }
    assert needs.keys() <= names_of_its_kind
    assert not needs or needs.keys() & known.keys()
    find_unused_options(option.declared_in, {name: get_default(each) for name, each in known.items()})


@pytest.mark.parametrize("trainer", TRAINERS)
def test_names_of_our_own_are_unique_in_every_run(trainer):
    """So a short name is never ambiguous, unless a user's own class brings another option of that name."""
    kinds = list_part_kinds(trainer)
    several = [each for each in list_all_owners(trainer) if each.kind not in kinds]
    for names in product(*map(list_names, kinds)):
        owners = [*several, *map(find_owner, kinds, names)]
        ambiguous = [name for name, found in name_options(owners).items() if len({each.key for each in found}) > 1]
        assert ambiguous == []
        options = [each for owner in owners for each in owner.options]
        assert set(choose_names(options).values()) == {each.short_name for each in options}


def test_every_class_of_ours_with_options_is_listed():
    listed = {(owner.kind, owner.name) for owner in list_all_owners("static")}
    for kind in ("strategy", "policy"):
        assert {(kind, name) for name in list_names(kind)} <= listed
    for kind in ("wrapper", "logger"):
        for name in list_names(kind):
            if name not in SIMULATOR_WRAPPERS:
                found = find_class(kind, name)
                has_options = bool(getattr(found, "switch", "") or list_options(found))
                assert ((kind, name) in listed) == has_options


def test_a_policy_belongs_to_one_program_or_to_all():
    for name in list_names("policy"):
        assert getattr(find_class("policy", name), "trainer", None) == ("hebbian" if name == "hebbian" else None)
    assert {find_class("trainer", name).Options.policy for name in TRAINERS} == {"auto", "hebbian", "mlp"}


def test_what_moved_to_the_owner_of_training_keeps_its_former_full_name(tmp_path, capsys):
    moved = ("max_env_steps", "stop_at_return", "max_episode_steps", "eval_every", "eval_episodes")
    flags = [f"--evolution.{name}={number}" for number, name in enumerate(moved, 3)]
    training = parse_config("static", ["--environment", "CartPole-v1", *flags], "").training
    assert [getattr(training, name) for name in moved] == [3, 4, 5, 6, 7]
    assert "--evolution.eval_every is now called --training.eval_every" in capsys.readouterr().err
    (tmp_path / "mine.yaml").write_text("evolution.eval_every: 3\nevolution.generations: 9\n")
    config = parse_config("static", ["--environment", "CartPole-v1", "--config", str(tmp_path / "mine.yaml")], "")
    assert (config.training.eval_every, config.trainer_options.generations) == (3, 9)
    saved = {"evolution.eval_every": 3, "evolution.generations": 9, "seed": 1}
    assert shorten_names("static", saved) == {"eval_every": 3, "generations": 9, "seed": 1}
    with pytest.raises(ValueError, match=r"eval_every is given twice, as evolution\.eval_every too"):
        shorten_names("static", {"eval_every": 2, **saved})


@pytest.mark.parametrize("trainer", TRAINERS)
def test_a_resumed_run_may_change_its_length_what_it_writes_and_where_it_computes_and_nothing_else(trainer):
    options = [each for owner in list_all_owners(trainer) for each in owner.options]
    length = {"generations", "max_env_steps", "stop_at_return"} - ({"generations"} if trainer == "hybrid" else set())
    writes = {"checkpoint_every", "keep_every", "loggers", "print_every", "quiet", "test_episodes", "video_every"}
    computes = {"allow_mixed_nodes", "chunk_size", "engine", "episode_timeout", "import", "ray_address", "threads"}
    hybrid = {"completion_log", "device"} if trainer == "hybrid" else set()
    changeable = {each.short_name for each in options if each.field.metadata["changeable"]}
    assert changeable == {"resume"} | length | writes | computes | hybrid
