"""Options that a run would not use are refused if they were typed, but not if they come from files."""

import pytest
import yaml

from hebbes.options import presets as preset_files
from hebbes.options.command_line import parse_config
from hebbes.training.prepare import prepare
from tests.training.scripted_runs import make_scripted_config, read_outcome, train

WITHOUT_EFFECT = {
    "--rank 2": "--rank is only used with --sampler low_rank",
    "--max_speed 1": "--max_speed is only used with --optimizer clip_up",
    "--clip_up_momentum 0.5": "--clip_up_momentum is only used with --optimizer clip_up",
    "--adam_beta1 0.5": "--adam_beta1 is only used with --optimizer adam",
    "--optimizer adam --momentum 0.5": "--momentum is only used with --optimizer sgd",
    "--policy small --hidden_sizes 8": (
        "hidden_sizes is not an option of policy small; it belongs to cnn, gru, hebbian, lstm, mlp"
    ),
    "--policy small --activation relu": "activation is not an option of policy small; it belongs to gru, lstm, mlp",
    "--policy mlp --recurrent_size 8": "recurrent_size is not an option of policy mlp; it belongs to gru, lstm",
    "--policy lstm --initialization pytorch": (
        "initialization is not an option of policy lstm; it belongs to cnn, mlp, small"
    ),
    "--policy hebbes.policies.mlp:MLP --recurrent_size 8": (
        "recurrent_size is not an option of policy MLP; it belongs to gru, lstm"
    ),
    "--policy linear --virtual_batch 5": (
        "virtual_batch is not an option of policy linear; it belongs to cnn, conv_lstm"
    ),
    "--policy lstm --bias": "bias is not an option of policy lstm; it belongs to linear, mlp",
    "--sigma_patience 3": "--sigma_patience is only used with --sigma_adaptation other than 1",
    "--top_share 0.3": "--top_share is only used with --fitness_shaping top_k",
    "--schedule_generations 9": (
        "--schedule_generations is only used with --learning_rate_schedule linear, cosine "
        "or --sigma_schedule linear, cosine"
    ),
    "--learning_rate_schedule cosine --schedule_generations 9 --decay 0.9": (
        "--learning_rate_decay is only used with --learning_rate_schedule exponential, asymptotic"
    ),
    "--sigma_schedule constant --sigma_min 0.1": (
        "--sigma_min is only used with --sigma_schedule exponential, asymptotic, linear, cosine or "
        "--sigma_adaptation other than 1"
    ),
    "--optimizer clip_up --no_divide_by_sigma": (
        "--divide_by_sigma is only used with --optimizer sgd, adam or --weight_decay other than 0"
    ),
    "--observation_std_min 0.1": "--observation_std_min is only used with --observation_normalization",
    "--population_size_max 400": "--population_size_max is only used with --num_interactions",
    "--early_stop_grace_steps 5": "--early_stop_grace_steps is only used with --early_stop_negative_streak",
    "--strategy pgpe --schedule_generations 9": (
        "--schedule_generations is only used with --learning_rate_schedule linear, cosine"
    ),
    "--initialization pytorch --init_from a.dat": (
        "--initialization is not used with --init_from, whose file has the weights"
    ),
    "--strategy cem --extra_variance_min 0.1": "--extra_variance_min is only used with --extra_variance other than 0",
    "--strategy ars --sigma_min 0.1": (
        "--sigma_min is only used with --sigma_schedule exponential, asymptotic, linear, cosine"
    ),
}
WITH_EFFECT = [
    *("--sampler low_rank --rank 2", "--optimizer clip_up --max_speed 1", "--hidden_sizes 8 --activation relu"),
    "--observation_normalization --observation_std_min 0.1",
    *("--policy lstm --recurrent_size 8", "--sigma_adaptation 0.5 --sigma_patience 3", "--num_interactions 9"),
    *(
        "--num_interactions 9 --population_size_max 400",
        "--sigma_schedule linear --schedule_generations 9 --sigma_min 0.1",
    ),
    *("--sigma_schedule constant --sigma_adaptation 0.5 --sigma_min 0.1", "--decay 0.9 --sigma_decay 0.9"),
    *("--no_divide_by_sigma", "--optimizer clip_up --weight_decay 0.1 --no_divide_by_sigma"),
    *("--policy small --initialization pytorch", "--policy linear --bias"),
    *(
        "--policy linear --no_bias",
        "--learning_rate_schedule constant --schedule_generations none",
        "--optimizer adam --momentum 0",
    ),
    *(
        "--policy hebbes.policies.lstm:LSTM --recurrent_size 8",
        "--early_stop_negative_streak 3 --early_stop_grace_steps 5",
    ),
]


@pytest.fixture(autouse=True)
def configs(tmp_path, monkeypatch):
    """A folder that replaces that of our presets."""
    monkeypatch.setattr(preset_files, "PRESETS", tmp_path)
    (tmp_path / "static").mkdir()
    return tmp_path


def parse(*arguments):
    return parse_config("static", ["--environment", "CartPole-v1", *arguments], "")


def get_refusal(*arguments):
    with pytest.raises(ValueError) as refused:
        parse(*arguments)
    return str(refused.value)


@pytest.mark.parametrize(("typed", "line"), WITHOUT_EFFECT.items())
def test_what_was_typed_without_effect_is_refused(typed, line):
    assert get_refusal(*typed.split()) == line


@pytest.mark.parametrize("typed", WITH_EFFECT)
def test_what_has_an_effect_is_taken(typed):
    assert parse(*typed.split())


def test_files_may_hold_what_a_run_does_not_use(configs, capsys):
    (configs / "static" / "CartPole-v1.yaml").write_text("rank: 3\nadam_beta1: 0.5\nhidden_sizes: [8]\n")
    from_preset = parse("--policy", "small")
    assert from_preset.settings.rank == 3
    assert "CartPole-v1.yaml: left out hidden_sizes, which policy small does not have" in capsys.readouterr().err
    written = configs / "written.yaml"
    written.write_text(yaml.safe_dump(from_preset.as_options()))  # as earlier versions wrote it
    assert parse("--config", str(written)).as_options() == from_preset.as_options()
    assert get_refusal("--config", str(written), "--rank", "3") == WITHOUT_EFFECT["--rank 2"]


def test_a_run_resumes_with_options_that_it_does_not_use(tmp_path):
    (tmp_path / "mine.yaml").write_text("rank: 3\npopulation_size_max: 20\n")
    folder = train(make_scripted_config(tmp_path, generations=1, config=str(tmp_path / "mine.yaml")))
    flags = ["--resume", str(folder), "--import", "tests.scripted", "--rank", "3"]
    config = parse_config("static", flags, "")
    assert (config.settings.rank, config.trainer_options.population_size_max) == (3, 20)
    with pytest.raises(ValueError, match=r"^--ray_address is only used with --engine ray$"):
        parse_config("static", [*flags, "--ray_address", "127.0.0.1:6379"], "")


@pytest.mark.parametrize(
    ("typed", "unused", "used"),
    [
        ("--policy linear", {"hidden_sizes", "activation", "recurrent_size", "virtual_batch"}, {"bias"}),
        ("--policy gru --sampler low_rank", {"bias", "virtual_batch"}, {"hidden_sizes", "recurrent_size", "rank"}),
        (
            "--policy hebbes.policies.mlp:MLP",
            {"recurrent_size", "virtual_batch"},
            {"hidden_sizes", "activation", "bias"},
        ),
        ("--strategy pgpe --optimizer adam", {"clip_up_momentum", "max_speed", "population_size_max"}, {"adam_beta1"}),
        ("--strategy cem", {"extra_variance_min"}, {"elite_share"}),
        ("--strategy ga --early_stop_negative_streak 3", {"episode_cap_min"}, {"parents", "early_stop_grace_steps"}),
    ],
)
def test_a_run_writes_the_options_that_it_uses_and_they_make_the_same_run(typed, unused, used, configs):
    config = parse(*typed.split())
    written = configs / "written.yaml"
    written.write_text(config.format_as_yaml())
    names_written = set(yaml.safe_load(written.read_text()))
    assert not unused & names_written and used <= names_written
    again = parse("--config", str(written))
    assert (again.as_options(), again.format_as_yaml()) == (config.as_options(), config.format_as_yaml())


def test_a_preset_cannot_come_between_a_run_and_the_options_that_it_wrote(configs):
    written = configs / "written.yaml"
    written.write_text(parse("--policy", "linear", "--optimizer", "adam").format_as_yaml())
    (configs / "static" / "CartPole-v1.yaml").write_text("policy: mlp\nhidden_sizes: [8]\nmomentum: 0.5\n")
    again = parse("--config", str(written))
    assert (again.choices.policy, again.settings.optimizer, again.format_as_yaml()) == (
        "linear",
        "adam",
        written.read_text(),
    )


def test_a_finished_run_leaves_only_what_it_used_and_resumes_from_its_checkpoint(tmp_path):
    folder = train(make_scripted_config(tmp_path, policy="auto", hidden_sizes=(3,), generations=2))
    written = yaml.safe_load((folder / "config.yaml").read_text())
    assert (written["policy"], written["hidden_sizes"], written["activation"]) == ("mlp", [3], "tanh")
    assert not {"recurrent_size", "virtual_batch", "rank", "momentum", "population_size_max"} & set(written)
    flags = ["--resume", str(folder), "--import", "tests.scripted", "--generations", "4"]
    config = parse_config("static", flags, "")
    whole = read_outcome(
        train(make_scripted_config(tmp_path, policy="mlp", hidden_sizes=(3,), generations=4, run_name="whole"))
    )
    assert read_outcome(train(config)) == whole
    assert "recurrent_size" not in yaml.safe_load((folder / "config.yaml").read_text())


@pytest.mark.parametrize(
    ("policy", "flags", "line"),
    [
        ("mlp", "--virtual_batch 5", "--virtual_batch is an option of policy cnn; "),
        ("cnn", "--activation relu", "--activation is an option of policy mlp; "),
        ("cnn", "--bias", "--bias is an option of policy mlp; "),
    ],
)
def test_what_auto_does_not_use_is_refused_once_it_is_known(policy, flags, line, tmp_path):
    environment = {"mlp": "CartPole-v1", "cnn": "CarRacing-v3"}[policy]
    config = parse_config("static", ["--environment", environment, "--folder", str(tmp_path), *flags.split()], "")
    assert config.choices.policy == "auto"
    with pytest.raises(ValueError) as refused:
        prepare(config)
    assert str(refused.value).startswith(line) and str(refused.value).endswith(f"--policy auto is {policy}")
    assert [path.name for path in tmp_path.iterdir()] == ["static"]
