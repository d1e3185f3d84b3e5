"""For an unknown flag, the error suggests the one that was probably meant."""

import pytest

from hebbes.contracts.option import map_flags
from hebbes.options.evaluation import EvaluateConfig
from hebbes.options.suggestions import NAMES_ELSEWHERE, suggest_options
from hebbes.registry.former_names import SHORT_OPTIONS
from hebbes.training.owners import Choices, list_chosen_owners, list_fixed_owners

OWNERS = [*list_fixed_owners("static"), *list_chosen_owners(Choices("static", "auto", "openai_es"))]
OPTIONS = [each for owner in OWNERS for each in owner.options]
TRAINING = list(dict.fromkeys(each.short_name for each in OPTIONS))
TRAINING += [f"no_{each.short_name}" for each in OPTIONS if isinstance(each.default, bool)]
TRAINING += SHORT_OPTIONS
EVALUATION = list(map_flags(EvaluateConfig))

MEANT = {
    "env": ["environment", "env_kwargs"],
    "pop": ["population_size"],
    "popsiz": ["popsize"],
    "gen": ["generations"],
    "generation": ["generations"],
    "weights": ["init_from"],
    "enviroment": ["environment"],
    "env_name": ["environment"],
    "env_id": ["environment"],
    "learning_rat": ["learning_rate"],
    "population_siz": ["population_size"],
    "workers": ["threads"],
    "name": ["run_name"],
    "output": ["folder"],
    "norm": ["observation_normalization"],
    "eval": ["eval_every", "eval_episodes"],
    "hidden": ["hidden_sizes"],
    "sigma_dec": ["sigma_decay"],
    "momentom": ["momentum"],
    "no_bia": ["no_bias"],
    "no_obs": ["no_observation_normalization"],
    "gpu": [],
    "": [],
}


@pytest.mark.parametrize(("typed", "meant"), MEANT.items())
def test_the_options_of_training(typed, meant):
    assert suggest_options(typed, TRAINING) == meant


@pytest.mark.parametrize(
    ("typed", "meant"),
    {"env": "environment", "weights": "path_weights", "steps": "max_episode_steps"}.items(),
)
def test_the_options_of_an_evaluation(typed, meant):
    assert suggest_options(typed, EVALUATION) == [meant]


def test_names_elsewhere_lead_to_options_and_are_not_options_themselves():
    assert NAMES_ELSEWHERE.keys() <= {*TRAINING, *EVALUATION}
    for name, theirs in NAMES_ELSEWHERE.items():
        programs = [options for options in (TRAINING, EVALUATION) if name in options]
        assert not any(each in options for each in theirs for options in programs)


def test_the_error_names_the_programs_that_have_the_option(refusal):
    line = refusal("evaluate_static.py", "--popsize", "8")
    assert line.endswith("unknown option --popsize; it belongs to train_static, train_hebbian, train_hybrid")


def test_the_error_names_them(refusal):
    assert refusal("train_static.py", "--env", "Foo").endswith(
        "unknown option --env, did you mean --environment or --env_kwargs?"
    )
