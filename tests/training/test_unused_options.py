"""Options that a run would not use are refused where somebody typed them, and nowhere else."""

from dataclasses import fields, replace

import pytest
from scripted_runs import SETTINGS, scripted_config, train

from rollouts.registry import lookup, names
from training import presets as preset_files
from training.command_line import parse_config, parse_configs
from training.config import TrainConfig

WITHOUT_EFFECT = {
    "--rank 2": "--rank is only used with --sampler low_rank",
    "--max_speed 1": "--max_speed is only used with --optimizer clip_up",
    "--clip_up_momentum 0.5": "--clip_up_momentum is only used with --optimizer clip_up",
    "--adam_beta1 0.5": "--adam_beta1 is only used with --optimizer adam",
    "--optimizer adam --momentum 0.5": "--momentum is only used with --optimizer sgd",
    "--policy small --hidden_sizes 8": "--hidden_sizes is only used with --policy auto, mlp, cnn, hebbian, lstm, gru",
    "--policy small --activation relu": "--activation is only used with --policy auto, mlp, lstm, gru",
    "--policy mlp --recurrent_size 8": "--recurrent_size is only used with --policy lstm, gru",
    "--policy lstm --initialization pytorch": "--initialization is only used with --policy auto, mlp, cnn, small",
    "--policy lstm --bias": "--bias is only used with --policy auto, linear, mlp",
    "--sigma_patience 3": "--sigma_patience is only used with --sigma_adaptation other than 1",
    "--top_share 0.3": "--top_share is only used with --fitness_shaping top_k",
    "--schedule_generations 9": (
        "--schedule_generations is only used with --lr_schedule linear, cosine or --sigma_schedule linear, cosine"
    ),
    "--lr_schedule cosine --schedule_generations 9 --decay 0.9": "--decay is only used with --lr_schedule exponential",
    "--sigma_schedule constant --sigma_min 0.1": (
        "--sigma_min is only used with --sigma_schedule exponential, linear, cosine or --sigma_adaptation other than 1"
    ),
    "--optimizer clip_up --no_divide_by_sigma": (
        "--divide_by_sigma is only used with --optimizer sgd, adam or --weight_decay other than 0"
    ),
    "--popsize_max 400": "--popsize_max is only used with --num_interactions",
    "--early_stop_grace_steps 5": "--early_stop_grace_steps is only used with --early_stop_negative_streak",
    "--strategy pgpe --schedule_generations 9": "--schedule_generations is only used with --lr_schedule linear, cosine",
    "--strategy cem --extra_variance_min 0.1": "--extra_variance_min is only used with --extra_variance other than 0",
    "--strategy ars --sigma_min 0.1": "--sigma_min is only used with --sigma_schedule exponential, linear, cosine",
}
WITH_EFFECT = [
    *("--sampler low_rank --rank 2", "--optimizer clip_up --max_speed 1", "--hidden_sizes 8 --activation relu"),
    *("--policy lstm --recurrent_size 8", "--sigma_adaptation 0.5 --sigma_patience 3", "--num_interactions 9"),
    *("--num_interactions 9 --popsize_max 400", "--sigma_schedule linear --schedule_generations 9 --sigma_min 0.1"),
    *("--sigma_schedule constant --sigma_adaptation 0.5 --sigma_min 0.1", "--decay 0.9 --sigma_decay 0.9"),
    *("--no_divide_by_sigma", "--optimizer clip_up --weight_decay 0.1 --no_divide_by_sigma"),
    *("--policy small --initialization pytorch", "--policy lstm --initialization xavier"),
    *("--policy lstm --no_bias", "--lr_schedule constant --schedule_generations none", "--optimizer adam --momentum 0"),
    *("--policy my_package.nets:Net --recurrent_size 8", "--early_stop_negative_streak 3 --early_stop_grace_steps 5"),
]


@pytest.fixture(autouse=True)
def configs(tmp_path, monkeypatch):
    """A folder of presets in place of ours."""
    monkeypatch.setattr(preset_files, "CONFIGS", tmp_path)
    (tmp_path / "static").mkdir()
    return tmp_path


def parse(*arguments):
    return parse_config("static", ["--environment", "CartPole-v1", *arguments], "")


def refusal(*arguments):
    with pytest.raises(ValueError) as refused:
        parse(*arguments)
    return str(refused.value)


@pytest.mark.parametrize(("typed", "line"), WITHOUT_EFFECT.items())
def test_what_was_typed_without_effect_is_refused(typed, line):
    assert refusal(*typed.split()) == line


@pytest.mark.parametrize("typed", WITH_EFFECT)
def test_what_has_an_effect_is_taken(typed):
    assert parse(*typed.split())


def test_files_may_hold_what_a_run_does_not_use(configs):
    (configs / "static" / "CartPole-v1.yaml").write_text("rank: 3\nadam_beta1: 0.5\nhidden_sizes: [8]\n")
    from_preset = parse("--policy", "small")
    assert from_preset.settings.rank == 3
    written = configs / "written.yaml"
    written.write_text(from_preset.as_yaml())
    assert parse("--config", str(written)).as_options() == from_preset.as_options()
    assert refusal("--config", str(written), "--rank", "3") == WITHOUT_EFFECT["--rank 2"]


def test_a_run_goes_on_with_options_that_it_does_not_use(tmp_path):
    settings = replace(SETTINGS, rank=3)
    folder = train(scripted_config(tmp_path, generations=1, settings=settings, popsize_max=20))
    flags = ["--resume", str(folder), "--import", "tests.scripted", "--rank", "3"]
    (config,) = parse_configs("static", flags, "")
    assert (config.settings, config.popsize_max) == (settings, 20)


def test_the_options_of_policies_name_the_policies_that_have_them():
    takers = {name: {each.name for each in fields(lookup("policies", name))} for name in names("policies")}
    for option in fields(TrainConfig):
        if needed := option.metadata.get("needs", {}).get("policy"):
            auto = {"auto"} & set(needed)
            assert auto == ({"auto"} if option.name in takers["mlp"] | takers["cnn"] else set())
            assert set(needed) - auto == {name for name in takers if option.name in takers[name]}


def test_every_need_names_an_option_and_values_that_it_may_have():
    for strategy in names("strategies"):
        known = {
            each.name: each
            for owner in (TrainConfig, lookup("strategies", strategy).Settings)
            for each in fields(owner)
        }
        for option in known.values():
            for other, values in option.metadata.get("needs", {}).items():
                choices = known[other].metadata.get("choices") if other in known else None
                assert not choices or set(values) <= set(choices)
