"""For an unknown flag, the error suggests the one that was probably meant."""

import pytest

from hebbes.contracts.option import map_flags
from hebbes.options.evaluation import EvaluateConfig
from hebbes.options.suggestions import NAMES_ELSEWHERE, suggest_flags
from hebbes.registry.former_names import SHORT_OPTIONS
from hebbes.training.owners import Choices, list_chosen_owners, list_fixed_owners

OWNERS = [*list_fixed_owners("static"), *list_chosen_owners(Choices("static", "auto", "openai_es"))]
OPTIONS = [each for owner in OWNERS for each in owner.options]
TRAINING = list(dict.fromkeys(f"--{each.short_name}" for each in OPTIONS))
TRAINING += [f"--no_{each.short_name}" for each in OPTIONS if isinstance(each.default, bool)]
TRAINING += [f"--{name}" for name in SHORT_OPTIONS]
EVALUATION = [f"--{name}" for name in map_flags(EvaluateConfig)]

MEANT = {
    "--env": ["--environment", "--env_kwargs"],
    "--pop": ["--population_size"],
    "--popsiz": ["--popsize"],
    "--gen": ["--generations"],
    "--generation": ["--generations"],
    "--weights": ["--init_from"],
    "--enviroment": ["--environment"],
    "--env_name": ["--environment"],
    "--env_id": ["--environment"],
    "--learning_rat": ["--learning_rate"],
    "--population_siz": ["--population_size"],
    "--workers": ["--threads"],
    "--name": ["--run_name"],
    "--output": ["--folder"],
    "--norm": ["--observation_normalization"],
    "--eval": ["--eval_every", "--eval_episodes"],
    "--hidden": ["--hidden_sizes"],
    "--sigma_dec": ["--sigma_decay"],
    "--momentom": ["--momentum"],
    "--no_bia": ["--no_bias"],
    "--no_obs": ["--no_observation_normalization"],
    "--gpu": [],
    "--": [],
    "-e": [],
}


@pytest.mark.parametrize(("typed", "meant"), MEANT.items())
def test_the_flags_of_training(typed, meant):
    assert suggest_flags(typed, TRAINING) == meant


@pytest.mark.parametrize(
    ("typed", "meant"),
    {"--env": "--environment", "--weights": "--path_weights", "--steps": "--max_episode_steps"}.items(),
)
def test_the_flags_of_an_evaluation(typed, meant):
    assert suggest_flags(typed, EVALUATION) == [meant]


def test_names_elsewhere_lead_to_options_and_are_not_options_themselves():
    ours = {flag.removeprefix("--") for flag in (*TRAINING, *EVALUATION)}
    assert set(NAMES_ELSEWHERE) <= ours
    for name, theirs in NAMES_ELSEWHERE.items():
        owners = [flags for flags in (TRAINING, EVALUATION) if f"--{name}" in flags]
        assert not any(f"--{each}" in flags for each in theirs for flags in owners)


def test_the_error_names_them(refusal):
    assert refusal("train_static.py", "--env", "Foo").endswith(
        "unknown option --env, did you mean --environment or --env_kwargs?"
    )
