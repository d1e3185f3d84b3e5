"""What is refused in files of options: presets and `--config`. The message names the file."""

import pytest

from tests.options.test_command_line import parse, read_refusal


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("popsiz: 4\n", "CartPole-v1.yaml: unknown option --popsiz, did you mean --popsize?"),
        (
            "population_size: 1.5\n",
            "CartPole-v1.yaml: population_size must be a whole number, got '1.5'",
        ),
        (
            "observation_normalization: 3\n",
            "CartPole-v1.yaml: observation_normalization must be true or false, got '3'",
        ),
    ],
)
def test_a_mistake_in_a_preset_names_the_file(presets, text, expected):
    presets("CartPole-v1.yaml", text)
    assert read_refusal("--environment", "CartPole-v1").endswith(expected)


@pytest.mark.parametrize("kind", ["strategy", "policy", "wrapper", "logger"])
def test_so_does_an_unknown_name_in_a_file(presets, tmp_path, kind):
    option = f"{kind}: nope" if kind in ("strategy", "policy") else f"{kind}s: [nope]"
    presets("CartPole-v1.yaml", option)
    assert f"CartPole-v1.yaml: unknown {kind} 'nope', " in read_refusal("--environment", "CartPole-v1")
    (tmp_path / "mine.yaml").write_text(option)
    presets("CartPole-v1.yaml", "")
    assert f"mine.yaml: unknown {kind} 'nope', " in read_refusal("--config", str(tmp_path / "mine.yaml"))


@pytest.mark.parametrize("name", ["resume", "run.resume", "run.config"])
def test_a_file_cannot_resume_a_run_or_name_another_file(presets, tmp_path, name):
    (tmp_path / "mine.yaml").write_text(f"{name}: weights\n")
    assert f"mine.yaml: {name} belongs on the command line" in read_refusal("--config", str(tmp_path / "mine.yaml"))


@pytest.mark.parametrize("text", ["[1, 2]", "a: [", "!!python/object/apply:os.system ['true']", "3: 4"])
def test_a_file_that_is_not_a_mapping_of_options_is_refused(presets, tmp_path, text):
    (tmp_path / "mine.yaml").write_text(text)
    with pytest.raises(ValueError, match=r"mine\.yaml"):
        parse("--config", str(tmp_path / "mine.yaml"))


def test_an_option_given_twice_in_a_file_is_refused(presets):
    presets("CartPole-v1.yaml", "learning_rate: 0.3\npopulation_size: 4\nlearning_rate: 0.4\n")
    with pytest.raises(ValueError, match=r"CartPole-v1\.yaml is not valid YAML: learning_rate given more than once"):
        parse("--environment", "CartPole-v1")
