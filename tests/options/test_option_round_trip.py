"""Whatever options a run has: written as texts or as YAML and read again, they are the same."""

from functools import cache

import yaml
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from hebbes.contracts.option import check_value, get_hints, parse_range, split_hint
from hebbes.options.command_line import resolve_config
from hebbes.options.texts import format_options
from hebbes.registry.lookup import list_names
from hebbes.training.owners import Choices, list_chosen_owners, list_fixed_owners

DECIDED = {
    "policy",
    "strategy",
    "environment",
    "preset",
    "config",
    "resume",
    "import",
    "wrappers",
    "gymnasium_wrappers",
}
DECIDED |= {"loggers", "morphologies", "run_name", "folder", "threads", "engine", "episode_timeout", "env_kwargs"}
"""Options that name other things, which must exist, or whose values depend on each other."""

WRAPPERS = st.sampled_from(
    [
        [],
        ["one_hot"],
        [{"early_stop": {"negative_streak": 3}}],
        ["grayscale", {"running_normalization": {"decay": 0.5}}],
    ]
)
TEXTS = st.text(st.characters(codec="utf-8", exclude_categories=("C", "Z")), min_size=1, max_size=8)
KWARGS = st.dictionaries(
    st.from_regex(r"[a-z]{1,5}", fullmatch=True).filter(lambda name: name != "render_mode"), st.integers() | TEXTS
)


@cache
def list_option_values(strategy, policy):
    """Name -> the values that an option may have, for every option that a run may set by itself."""
    owners = [*list_fixed_owners("static"), *list_chosen_owners(Choices("static", policy, strategy))]
    found = {}
    for option in (each for owner in owners for each in owner.options if each.short_name not in DECIDED):
        found.setdefault(option.short_name, make_values(option))
    return found


def make_values(option):
    kind, is_list, is_optional = split_hint(get_hints(option.declared_in)[option.field.name])
    metadata = option.field.metadata
    if choices := metadata.get("choices"):
        items = st.sampled_from(choices)
    elif kind is bool:
        items = st.booleans()
    elif kind in (int, float):
        bounds = parse_range(metadata["range"]) if metadata.get("range") else None
        numbers = st.integers(-3, 40) if kind is int else st.floats(-3, 40, allow_nan=False)
        items = numbers if bounds is None else numbers.filter(bounds.contains)
    else:
        items = TEXTS.filter(lambda text: text.lower() != "none")
    if is_list:
        length = {"resize": 2, "crop": 4}.get(option.short_name)
        items = st.lists(items, min_size=length or 0, max_size=length or 3)
    return items | st.none() if is_optional else items


@st.composite
def make_options(draw):
    strategy = draw(st.sampled_from(list_names("strategy")))
    policy = draw(st.sampled_from([name for name in list_names("policy") if name != "hebbian"]))
    values = list_option_values(strategy, policy)
    names = draw(st.lists(st.sampled_from(sorted(values)), unique=True, max_size=6))
    options = {name: draw(values[name]) for name in names}
    return {"strategy": strategy, "policy": policy, "wrappers": draw(WRAPPERS), "env_kwargs": draw(KWARGS), **options}


def resolve(given):
    return resolve_config("static", given)


def try_to_resolve(options):
    """The config; None if the options do not fit together."""
    try:
        return resolve(format_options({"environment": "CartPole-v1", "preset": "none", **options}))
    except ValueError:
        return None


@settings(max_examples=15)
@given(make_options())
def test_texts_and_yaml_give_the_same_options(options):
    config = try_to_resolve(options)
    assume(config is not None)
    found = config.as_options()
    for name, value in options.items():
        if name in found and name != "wrappers":
            assert found[name] == value
    again = resolve(format_options(found))
    assert again.as_options() == found
    assert resolve(format_options(yaml.safe_load(yaml.safe_dump(found)))).as_options() == found
    for owner in again.owners:
        for each in owner.options:
            check_value(each.declared_in, each.field, again.values[each.key])
