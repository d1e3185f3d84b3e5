"""Wrappers in options: with or without arguments, on the command line and in files."""

import gymnasium
import numpy as np
import pytest

from hebbes.environments.environment_spec import EnvironmentSpec
from hebbes.environments.make_batch_env import make_batch_env
from hebbes.environments.part_spec import PartSpec, make_part_spec
from hebbes.environments.trial import find_spaces
from hebbes.options.command_line import parse_config
from hebbes.registry.lookup import GYMNASIUM_WRAPPERS
from hebbes.training.agent_and_environment import make_environment_spec


def parse(*arguments):
    return parse_config("static", arguments, "test")


@pytest.mark.parametrize(
    ("text", "entry"),
    [
        ("clip_action", "clip_action"),
        ("running_normalization: {decay: 0.9}", {"running_normalization": {"decay": 0.9}}),
        ("clip_action: {}", "clip_action"),
        ("TimeLimit: {max_episode_steps: 7}", {"gymnasium.wrappers:TimeLimit": {"max_episode_steps": 7}}),
        ("gymnasium.wrappers.FlattenObservation", "gymnasium.wrappers:FlattenObservation"),
        ("hebbes.wrappers.scale:Scale", "scale"),
        ("hebbes.wrappers.scale.Scale: {names: [a, b]}", {"scale": {"names": ["a", "b"]}}),
    ],
)
def test_wrappers_may_have_arguments_on_the_command_line_and_in_files(tmp_path, text, entry):
    typed = parse("--environment", "CartPole-v1", "--gymnasium_wrappers", text, "--wrappers", text, "one_hot")
    assert typed.environment.wrappers == (entry, "one_hot")
    assert list(map(make_part_spec, typed.environment.gymnasium_wrappers)) == [make_part_spec(entry)]
    (tmp_path / "mine.yaml").write_text(typed.format_as_yaml())
    assert parse("--config", str(tmp_path / "mine.yaml")).as_options() == typed.as_options()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "5",
        "[a]",
        "{a: {b: 1}, c: {}}",
        "a: 3",
        "TimeLimit:{max_episode_steps:3}",
        "{",
    ],
)
def test_text_that_names_no_wrapper_is_refused(text):
    with pytest.raises(ValueError) as refused:
        parse("--environment", "CartPole-v1", f"--wrappers={text}")
    assert str(refused.value) == f"wrappers: an entry is NAME, or 'NAME: {{argument: value, ...}}'; got {text!r}"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("a: {b: .nan}", "must hold finite numbers, texts, lists and mappings, got nan"),
        ("a: {b: 2020-01-01}", "must hold finite numbers, texts, lists and mappings, got datetime.date(2020, 1, 1)"),
        ("a: {3: 1}", "must have names for keys, got 3"),
        ("a: {b: {true: 1}}", "must have names for keys, got True"),
    ],
)
def test_arguments_that_no_file_gives_back_are_refused(text, reason):
    with pytest.raises(ValueError) as refused:
        parse("--environment", "CartPole-v1", f"--wrappers={text}")
    assert str(refused.value) == f"wrappers: arguments of a {reason}; got {text!r}"


def test_a_wrapper_of_ours_is_listed_once():
    with pytest.raises(ValueError, match=r"^wrappers: frame_stack is named twice$"):
        parse("--environment", "CartPole-v1", "--wrappers", "frame_stack: {num_frames: 2}", "frame_stack")


def test_only_gymnasiums_harmless_wrappers_may_be_named_by_a_file():
    config = parse("--environment", "CartPole-v1", "--gymnasium_wrappers", "TimeLimit: {max_episode_steps: 7}")
    assert config.trusted_modules == []
    recording = "gymnasium.wrappers:RecordVideo: {video_folder: /tmp/films}"
    config = parse("--environment", "CartPole-v1", "--gymnasium_wrappers", recording)
    assert config.trusted_modules == ["gymnasium.wrappers"]


def test_gymnasiums_wrappers_are_suggested_and_say_what_they_need():
    for text, expected in [
        ("TimeLimt", "unknown wrapper 'TimeLimt', did you mean 'TimeLimit'"),
        (
            "Nix",
            "gymnasium_wrappers: unknown wrapper 'Nix', known: bullet_distance, bullet_grace, AtariPreprocessing, ",
        ),
        ("NormalizeObservatio", "'NormalizeObservatio', did you mean 'ResizeObservation'"),  # not one that is refused
        ("crop", "gymnasium_wrappers: unknown wrapper 'crop', known: "),
        ("TimeLimit", "gymnasium_wrappers: 'gymnasium.wrappers:TimeLimit' cannot be made with no arguments: missing"),
        ("gymnasium.wrappers.NormalizeObservation", "keeps statistics .*; --observation_normalization"),
        ("gymnasium.wrappers.stateful_observation.NormalizeObservation", "keeps statistics "),
        ("RecordVideo", "RecordVideo' needs rendered images, .*: evaluate with --video or --render"),
        ("TimeLimit: {nope: 1}", "has no argument 'nope'; it takes max_episode_steps"),
        ("FrameStackObservation: {stack_size: 257}", "stack_size of .* must be within 256, got 257"),
        ("ReshapeObservation: {shape: [5000, 2]}", r"shape of .* must be within 4096, got \[5000, 2\]"),
        ("tests.options.test_wrapper_options:Named: {name: 3, option: 4}", "name must be text, got 3"),
    ]:
        with pytest.raises(ValueError, match=expected):
            make_environment_spec(parse("--environment", "CartPole-v1", "--gymnasium_wrappers", text))


class Named(gymnasium.Wrapper):
    """A wrapper whose arguments are named like ours."""

    def __init__(self, env, name, option="", found=""):
        super().__init__(env)
        if not isinstance(name, str):
            raise TypeError(f"name must be text, got {name}")


SETTINGS = {
    "ClipReward": {"min_reward": 0},
    "DelayObservation": {"delay": 1},
    "DtypeObservation": {"dtype": "float64"},
    "FrameStackObservation": {"stack_size": 2},
    "MaxAndSkipObservation": {"skip": 2},
    "StickyAction": {"repeat_action_probability": 0.5},
    "TimeLimit": {"max_episode_steps": 3},
    **{
        name: {} for name in ("FlattenObservation", "OrderEnforcing", "RecordEpisodeStatistics", "TimeAwareObservation")
    },
}
"""Gymnasium's wrappers that can wrap CartPole, with arguments for them."""


@pytest.mark.parametrize("name", SETTINGS)
def test_an_episode_in_gymnasiums_wrappers_does_not_depend_on_those_before(name):
    wrapper = PartSpec(f"gymnasium.wrappers:{name}", SETTINGS[name])
    spec = EnvironmentSpec("CartPole-v1", "gymnasium", gymnasium_wrappers=(wrapper,))
    played = []
    for before in (0, 3):
        env = make_batch_env(spec, [7], threads=1, training=False)
        for episode in range(before):
            env.start(episode)
            env.step(np.array([1]), np.array([0]))
        seen = [env.start(5)[0]]
        seen += [env.step(np.array([env_step % 2]), np.array([0])).observations[0] for env_step in range(2)]
        played.append(np.array(seen))
        env.close()
    assert name in GYMNASIUM_WRAPPERS
    assert np.array_equal(*played)


def test_a_file_may_not_name_wrappers_that_fill_the_memory():
    wrapper = PartSpec("gymnasium.wrappers:FrameStackObservation", {"stack_size": 20_000_000})
    spec = EnvironmentSpec("CartPole-v1", "gymnasium", gymnasium_wrappers=(wrapper,))
    with pytest.raises(ValueError, match="stack_size"):
        find_spaces(spec)


def test_wrappers_that_replace_the_shared_ones_are_reported(capsys):
    parse("--environment", "HopperBulletEnv-v0", "--gymnasium_wrappers", "TimeLimit: {max_episode_steps: 9}")
    line = "gymnasium_wrappers replaces the preset's [{bullet_grace: {grace_steps: 201}}]: name these too"
    assert line in capsys.readouterr().err
    parse("--environment", "HopperBulletEnv-v0")
    assert "replaces" not in capsys.readouterr().err


def test_arguments_of_the_environment_that_replace_a_presets_are_reported(capsys):
    damaged, costs = ("--environment", "Ant-v5", "--preset", "damage"), "contact_cost_weight: 0, ctrl_cost_weight: 0"
    parse(*damaged, "--env_kwargs", f"{{{costs}}}")
    line = f"env_kwargs replaces the preset's {{{costs}, healthy_reward: 0}}: name these too if you want to keep them"
    assert line in capsys.readouterr().err
    parse(*damaged, "--env_kwargs", f"{{{costs}, healthy_reward: 1, reset_noise_scale: 0}}")
    parse(*damaged)
    assert "replaces" not in capsys.readouterr().err


def get_refusal(*arguments):
    with pytest.raises(ValueError) as refused:
        parse("--environment", "CartPole-v1", *arguments)
    assert "\n" not in str(refused.value)
    return str(refused.value)


STREAK = {"early_stop_negative_streak": 20, "early_stop_grace_steps": 3}


@pytest.mark.parametrize(
    "typed",
    [
        ["--early_stop_negative_streak", "20", "--early_stop_grace_steps", "3"],
        ["--early_stop.negative_streak", "20", "--early_stop.grace_steps", "3"],
        ["--wrappers", "early_stop: {negative_streak: 20, grace_steps: 3}"],
        ["--wrappers", "early_stop: {negative_streak: 20}", "--early_stop_grace_steps", "3"],
        ["--wrappers", "early_stop: {negative_streak: 9, grace_steps: 3}", "--early_stop.negative_streak", "20"],
        ["--wrappers", "early_stop", "--early_stop_negative_streak", "20", "--early_stop_grace_steps", "3"],
    ],
)
def test_a_wrapper_of_ours_in_a_list_equals_its_flags(typed, tmp_path):
    config = parse("--environment", "CartPole-v1", *typed)
    assert STREAK.items() <= config.as_options().items()
    assert config.environment.wrappers == ()
    assert config.list_put_on("wrapper") == [
        PartSpec("early_stop", {"negative_streak": 20, "grace_steps": 3, "counts_grace": False})
    ]
    (tmp_path / "mine.yaml").write_text(
        "environment: CartPole-v1\nwrappers: [{early_stop: {negative_streak: 20, grace_steps: 3}}]\n"
    )
    in_file = parse("--config", str(tmp_path / "mine.yaml"))
    assert in_file.as_options() == config.as_options()
    assert make_environment_spec(in_file) == make_environment_spec(config)
    changed = parse("--config", str(tmp_path / "mine.yaml"), "--early_stop_negative_streak", "5")
    assert {**STREAK, "early_stop_negative_streak": 5}.items() <= changed.as_options().items()


def test_a_new_list_replaces_the_one_of_a_file(tmp_path):
    (tmp_path / "mine.yaml").write_text(
        "environment: CartPole-v1\nwrappers: [{early_stop: {negative_streak: 20}}]\nframe_stack: 2\n"
    )
    config = parse("--config", str(tmp_path / "mine.yaml"), "--wrappers", "settle: {num_steps: 3}")
    assert {spec.name for spec in config.list_put_on("wrapper")} == {"frame_stack", "settle"}
    with (tmp_path / "mine.yaml").open("a") as file:
        file.write("loggers: [tensorboard]\n")
    config = parse("--config", str(tmp_path / "mine.yaml"), "--loggers")
    assert {spec.name for spec in config.list_put_on("wrapper")} == {"frame_stack", "early_stop"}
    assert config.list_loggers() == []
    config = parse("--config", str(tmp_path / "mine.yaml"), "--wrappers")
    assert {spec.name for spec in config.list_put_on("wrapper")} == {"frame_stack"}


def test_of_lists_given_twice_the_last_one_counts():
    common = ("--environment", "CartPole-v1", "--wrappers", "frame_stack: {num_frames: 4}")
    assert [spec.name for spec in parse(*common, "--wrappers", "grayscale").list_put_on("wrapper")] == ["grayscale"]
    assert parse(*common, "--wrappers").list_put_on("wrapper") == []


@pytest.mark.parametrize("name", ["grayscale", "fire_reset", "atari_42"])
def test_a_wrapper_with_a_switch_is_its_flag(name):
    flag, listed, full = (
        parse("--environment", "CartPole-v1", *typed)
        for typed in ([f"--{name}"], ["--wrappers", name], [f"--{name}.{name}"])
    )
    assert flag.as_options()[name] is True
    assert flag.as_options() == listed.as_options() == full.as_options()
    assert [spec.name for spec in listed.list_put_on("wrapper")] == [name]
    off = parse("--environment", "CartPole-v1", "--wrappers", name, f"--no_{name}")
    assert off.list_put_on("wrapper") == []


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (
            "early_stop",
            "wrappers: early_stop does nothing without negative_streak, as in 'early_stop: {negative_streak: ",
        ),
        ("early_stop: {grace_steps: 3}", "--early_stop_grace_steps is only used with --early_stop_negative_streak"),
        ("early_stop: {negative_streak: -1}", "early_stop_negative_streak must be >= 0, got -1"),
        ("early_stop: {negative_streak: a}", "early_stop_negative_streak must be a whole number, got 'a'"),
        ("early_stop: {streak: 3}", "unknown option --early_stop.streak, did you mean --early_stop.negative_streak?"),
        ("frame_stack: {num_frames: 1000}", "frame_stack must be in [1, 256], got 1000"),
        ("frame_stack", "wrappers: frame_stack does nothing without num_frames"),
        ("resize", "wrappers: resize does nothing without size"),
    ],
)
def test_a_wrapper_of_ours_that_would_do_nothing_or_fail_is_refused(text, line):
    assert get_refusal("--wrappers", text).startswith(line)


def test_a_mistake_in_a_list_of_a_file_names_the_file(tmp_path):
    file = tmp_path / "mine.yaml"
    for text, line in [
        ("a: 3", "wrappers: an entry is NAME"),
        ("early_stop", "wrappers: early_stop does nothing"),
        ("early_stop: {streak: 3}", "unknown option --early_stop.streak, did you mean --early_stop.negative_streak?"),
    ]:
        file.write_text(f"wrappers: ['{text}']\n")
        assert get_refusal("--config", str(file)).startswith(f"{file}: {line}")


def test_a_misspelt_wrapper_of_ours_is_named():
    with pytest.raises(ValueError, match=r"^unknown wrapper 'early_stp', did you mean 'early_stop'"):
        parse("--environment", "CartPole-v1", "--wrappers", "early_stp")
