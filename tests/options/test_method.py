"""The method of a run: what belongs to it, and the labels that tell methods apart."""

import pytest

from hebbes.options.command_line import parse_config
from hebbes.options.method import find_method, group_by_method
from tests.options.test_users_classes import MINE
from tests.training.scripted_runs import make_config


def find(**options):
    return find_method(make_config(**{"environment": "CartPole-v1", **options}).list_used_options())


def test_seed_place_budget_engine_and_printing_are_no_part_of_it():
    incidental = {
        **{"seed": 3, "seeds": 2, "folder": "elsewhere", "run_name": "other", "print_every": 7, "checkpoint_every": 3},
        **{"threads": 1, "chunk_size": 4, "generations": 5, "max_env_steps": 10_000, "test_episodes": 0},
    }
    assert find(**incidental) == find()
    for name, value in {"sigma": 0.3, "eval_episodes": 9, "max_episode_steps": 20, "policy": "linear"}.items():
        assert find(**{name: value}) != find(), name


def test_options_of_a_users_logger_are_no_part_of_it():
    assert find(loggers=(f"{MINE}:Diary",), word="told") == find() == find(loggers=({f"{MINE}:Diary": {"times": 2}},))
    assert find(policy=f"{MINE}:Scaled", gain=3) != find(policy=f"{MINE}:Scaled")


@pytest.mark.parametrize("loggers", [None, 3, [3], [{}], [""], "text"])
def test_options_of_a_foreign_file_may_make_no_sense(loggers):
    assert find_method({"sigma": 0.1, "loggers": loggers}) == {"sigma": "0.1"}


def test_options_without_effect_are_no_part_of_it():
    """A checkpoint has them, and a policy file does not."""
    config = parse_config("hebbian", ["--environment", "CartPole-v1", "--learning_rate_schedule", "constant"], "")
    options = config.as_options()
    assert options["learning_rate_decay"] == 0.995 and "learning_rate_decay" not in config.list_used_options()
    assert find_method(options) == find_method(config.list_used_options())
    assert find_method({**options, "learning_rate_decay": 0.5}) == find_method(options)


def test_other_classes_with_an_option_of_that_name_do_not_say_whether_it_has_an_effect():
    mine = {"strategy": "mine:Mine", "rank": 1}
    assert find_method(mine)["rank"] == "1"  # `rank` of openai_es needs a sampler
    floors = [find_method({"strategy": "ars", "sigma_min": each}) for each in (0.01, 0.05)]
    assert floors[0] == floors[1]  # that of one_plus_one needs nothing


def test_where_a_search_starts_is_part_of_it():
    assert find(init_from="a.dat") != find()
    assert find(init_from="a.dat")["init_from"] == "a.dat"


def test_files_of_earlier_versions_name_the_same_options():
    earlier = {"popsize_max": 3, "num_interactions": 5, "evolution.max_env_steps": 5}
    assert find_method(earlier) == {"population_size_max": "3", "num_interactions": "5"}


def test_a_label_is_what_searches_and_what_differs_among_those_of_its_name():
    small, large, cem = find(sigma=0.05), find(sigma=0.5), find(strategy="cem")
    assert group_by_method([small, cem, small]) == {"openai_es": [0, 2], "cem": [1]}
    assert group_by_method([small, large, cem]) == {"openai_es sigma=0.05": [0], "openai_es sigma=0.5": [1], "cem": [2]}
    linear, gru = find(policy="linear"), find(policy="gru")  # options that only one of the policies has are left out
    assert list(group_by_method([gru, linear])) == ["openai_es policy=gru", "openai_es policy=linear"]


def test_files_from_before_an_option_are_of_the_method_that_has_its_default():
    new, other = (find(observation_normalization=True, observation_std_min=each) for each in (0.001, 0.1))
    earlier = {name: text for name, text in new.items() if name != "observation_std_min"}
    assert len(earlier) < len(new)
    assert group_by_method([earlier, new, other]) == {"openai_es": [0, 1], "openai_es observation_std_min=0.1": [2]}


def test_methods_at_their_defaults_are_told_apart_by_what_searches():
    assert list(group_by_method([{"strategy": "openai_es"}, {"algorithm": "td3"}])) == ["openai_es", "td3"]


def test_the_order_of_the_options_does_not_change_a_label():
    methods = [find(), find(policy="linear", sigma=0.3)]
    turned = [dict(reversed(method.items())) for method in methods]
    assert group_by_method(methods) == group_by_method(turned)


def test_an_option_that_only_one_has_tells_them_apart_where_nothing_else_does():
    assert list(group_by_method([{"strategy": "cem"}, {"strategy": "cem", "elites": "3"}])) == ["cem", "cem elites=3"]


def test_a_method_of_unknown_options_is_called_by_its_policy():
    assert list(group_by_method([{"policy": "mlp"}, {}])) == ["mlp", "unknown"]
