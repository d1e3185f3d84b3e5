"""What the settings of every strategy have in common."""

from dataclasses import dataclass, field

import pytest

from hebbes.contracts.option import find_unused_options, get_default, list_options, parse_range, split_hint
from hebbes.contracts.option import get_hints as get_types
from hebbes.registry.lookup import find_class
from hebbes.strategies.core.gaussian_search import GaussianStrategy
from hebbes.strategies.core.optimizers import OPTIMIZERS, OptimizerSettings
from hebbes.strategies.ga import GASettings
from hebbes.strategies.openai_es import OpenAIESSettings
from tests.strategies.every_strategy import each_strategy


@each_strategy
def test_every_number_has_a_range_which_holds_its_default(name):
    settings = find_class("strategy", name).Settings
    for each in list_options(settings):
        kind, _, _ = split_hint(get_types(settings)[each.name])
        if kind in (int, float):
            allowed, default = parse_range(each.metadata["range"]), get_default(each)
            assert default is None or allowed.contains(default), each.name
        elif kind is str:
            assert get_default(each) in each.metadata["choices"], each.name


def test_unused_settings_are_found_with_what_would_use_them():
    options = {each.name: get_default(each) for each in list_options(OpenAIESSettings)}
    unused = find_unused_options(OpenAIESSettings, options)
    assert unused["adam_beta1"] == "--optimizer adam"
    assert unused["sigma_patience"] == "--sigma_adaptation other than 1"
    assert "momentum" not in unused and "sigma_min" not in unused
    used = find_unused_options(OpenAIESSettings, {**options, "optimizer": "adam", "sigma_adaptation": 0.5})
    assert {"adam_beta1", "sigma_patience"}.isdisjoint(used) and "momentum" in used


@dataclass(frozen=True)
class UsersSettings(GASettings):
    """A user's own fields have nothing but a help text."""

    shape: str = field(default="round", metadata={"help": "anything"})
    power: float = field(default=-3.0, metadata={"help": "any number"})


def test_fields_of_a_users_settings_need_only_a_help_text():
    settings = UsersSettings(shape="any", power=-7, parents=3)
    assert (settings.shape, settings.power, settings.parents) == ("any", -7.0, 3)
    with pytest.raises(ValueError, match=r"^parents must be >= 1, got 0$"):
        UsersSettings(parents=0)
    with pytest.raises(ValueError, match=r"^power must be a number, got 'high'$"):
        UsersSettings(power="high")


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_optimizers_keep_as_many_vectors_as_they_say(name):
    state = OPTIMIZERS[name](OptimizerSettings(), 100).state_dict()
    assert sum(array.size == 100 for array in state.values()) == OPTIMIZERS[name].num_vectors
    assert GaussianStrategy.memory(OptimizerSettings(optimizer=name), 100, 10).state == 8 * 100 * (
        2 + OPTIMIZERS[name].num_vectors
    )
