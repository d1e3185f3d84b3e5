"""An unknown flag is answered with what a person would have meant."""

from dataclasses import fields

import pytest

from hebbes.contracts.option import flags_of
from hebbes.options.evaluation import EvaluateConfig
from hebbes.options.suggestions import ELSEWHERE, suggest_flags
from hebbes.registry.lookup import lookup
from hebbes.training.config import TrainConfig

SETTINGS = lookup("strategy", "openai_es").Settings
TRAINING = [f"--{name}" for owner in (TrainConfig, SETTINGS) for name in flags_of(owner)]
TRAINING += [f"--no_{each.name}" for owner in (TrainConfig, SETTINGS) for each in fields(owner) if each.type is bool]
EVALUATION = [f"--{name}" for name in flags_of(EvaluateConfig)]

MEANT = {
    "--env": ["--environment", "--env_kwargs"],
    "--pop": ["--popsize"],
    "--popsiz": ["--popsize"],
    "--gen": ["--generations"],
    "--generation": ["--generations"],
    "--weights": ["--init_from"],
    "--enviroment": ["--environment"],
    "--env_name": ["--environment"],
    "--env_id": ["--environment"],
    "--learning_rate": ["--lr"],
    "--population_size": ["--popsize"],
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


def test_what_others_call_our_options_leads_to_options_and_is_none_itself():
    ours = {flag.removeprefix("--") for flag in (*TRAINING, *EVALUATION)}
    assert set(ELSEWHERE) <= ours
    for name, theirs in ELSEWHERE.items():
        owners = [flags for flags in (TRAINING, EVALUATION) if f"--{name}" in flags]
        assert not any(f"--{each}" in flags for each in theirs for flags in owners)


def test_the_line_names_them(refusal):
    assert refusal("train_static.py", "--env", "Foo").endswith(
        "unknown option --env, did you mean --environment or --env_kwargs?"
    )
