"""Wrappers as options name them: with or without arguments, in YAML on the command line and in files."""

import pytest

from training.assembly import environment_spec
from training.command_line import parse_config
from training.unused_options import as_yaml


def parse(*arguments):
    return parse_config("static", arguments, "test")


@pytest.mark.parametrize(
    ("text", "entry"),
    [
        ("early_stop", "early_stop"),
        ("early_stop: {negative_streak: 3}", {"early_stop": {"negative_streak": 3}}),
        ("early_stop: {}", "early_stop"),
        ("TimeLimit: {max_episode_steps: 7}", {"gymnasium.wrappers:TimeLimit": {"max_episode_steps": 7}}),
        ("gymnasium.wrappers.FlattenObservation", "gymnasium.wrappers:FlattenObservation"),
        ("my.package:Mine", "my.package:Mine"),
        ("my.package.Mine: {names: [a, b]}", {"my.package:Mine": {"names": ["a", "b"]}}),
    ],
)
def test_wrappers_may_have_arguments_on_the_command_line_and_in_files(tmp_path, text, entry):
    typed = parse("--environment", "CartPole-v1", "--gymnasium_wrappers", text, "--wrappers", text, "one_hot")
    assert (typed.gymnasium_wrappers, typed.wrappers) == ((entry,), (entry, "one_hot"))
    (tmp_path / "mine.yaml").write_text(as_yaml(typed))
    assert parse("--config", str(tmp_path / "mine.yaml")).as_options() == typed.as_options()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "5",
        "[a]",
        "{a: {b: 1}, c: {}}",
        "a: 3",
        "a: {b: .nan}",
        "TimeLimit:{max_episode_steps:3}",
        "a: {b: .nan}",
        "TimeLimit:{max_episode_steps:3}",
        "a: {b: 2020-01-01}",
        "{",
    ],
)
def test_what_is_no_wrapper_is_refused(capsys, text):
    with pytest.raises(SystemExit) as stopped:
        parse("--environment", "CartPole-v1", f"--wrappers={text}")
    assert stopped.value.code == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert f"argument --wrappers: a wrapper is NAME, or 'NAME: {{argument: value, ...}}'; got {text!r}" in line


def test_only_gymnasiums_harmless_wrappers_may_be_named_by_a_file():
    config = parse("--environment", "CartPole-v1", "--gymnasium_wrappers", "TimeLimit: {max_episode_steps: 7}")
    assert config.trusted_modules == []
    recording = "gymnasium.wrappers:RecordVideo: {video_folder: /tmp/films}"
    config = parse("--environment", "CartPole-v1", "--gymnasium_wrappers", recording)
    assert config.trusted_modules == ["gymnasium.wrappers"]


def test_gymnasiums_wrappers_are_suggested_and_say_what_they_need():
    for text, expected in [
        ("TimeLimt", "unknown wrapper 'TimeLimt', did you mean 'TimeLimit'"),
        ("TimeLimit", "gymnasium_wrappers: 'gymnasium.wrappers:TimeLimit' cannot be made with no arguments: missing"),
    ]:
        with pytest.raises(ValueError, match=expected):
            environment_spec(parse("--environment", "CartPole-v1", "--gymnasium_wrappers", text))
