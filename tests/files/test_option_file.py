"""Files of options that are no such file, or that would cost too much, are refused in one line."""

import os
from pathlib import Path

import pytest
import yaml

from hebbes.contracts.yaml_text import format_yaml, format_yaml_line, parse_yaml
from hebbes.files.option_file import read_yaml
from hebbes.options.command_line import parse_config
from hebbes.options.evaluation import EvaluateConfig
from tests.python_process import run_python


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("a: &x [1]\nb: *x", r"not valid YAML: aliases \(\*name\) are refused here .*line 2, column 4"),
        ("[" * 5000, "not valid YAML: maximum recursion depth exceeded"),
        ("a: 1\n---\nb: 2", "not valid YAML: expected a single document"),
        ("a: !!python/name:os.system", "not valid YAML: could not determine a constructor"),
        ("a: 1\nb: 2001-99-99", "not valid YAML: not a value of its type .*line 2, column 4"),
        ('a: !!int ""', "not valid YAML: not a value of its type"),
        ("a: !!bool x", "not valid YAML: not a value of its type"),
        ("a: !!timestamp x", "not valid YAML: not a value of its type"),
        ("a: 1\nb: 2\na: 3", "a given more than once .*line 3"),
        ("a:\n  {b: 1, b: 2}", "b given more than once .*line 2"),
        ("<<: {a: 1, a: 2}", "a given more than once"),
        ("a: !!map x", "not valid YAML: expected a mapping"),
        ("", "must hold a mapping"),
        ("- a", "must hold a mapping"),
        ("1: a", "must hold a mapping"),
    ],
)
def test_what_is_not_a_mapping_of_options_is_refused(text, line, tmp_path):
    path = tmp_path / "options.yaml"
    path.write_text(text)
    with pytest.raises(ValueError, match=line) as refused:
        read_yaml(path)
    assert str(path) in str(refused.value) and "\n" not in str(refused.value)


def test_a_mapping_may_be_empty_and_merged(tmp_path):
    path = tmp_path / "options.yaml"
    path.write_text("{}")
    assert read_yaml(path) == {}
    path.write_text("measured: 5\n<<: {a: 1}\nb: [x]")
    assert read_yaml(path) == {"a": 1, "b": ["x"]}


@pytest.mark.parametrize("text", ["1e-3", "+1E5", "-.5e3", "2.e+7", "1e308"])
def test_numbers_need_neither_a_point_nor_a_sign_of_the_exponent(text):
    assert parse_yaml(f"{{a: {text}}}") == {"a": float(text)}


@pytest.mark.parametrize(
    ("text", "read"), [("12e3", "12e3"), ("1e400", "1e400"), ("12.5", "12.5"), ("1.10", "1.10"), ("'1e3'", "1e3")]
)
def test_a_text_may_look_like_a_number(text, read, tmp_path):
    (tmp_path / "options.yaml").write_text(f"environment: CartPole-v1\nrun_name: {text}\nlearning_rate: 1e-3\n")
    config = parse_config("static", ["--config", str(tmp_path / "options.yaml")], "")
    assert config.run.run_name == read and config.settings.learning_rate == 0.001


def test_numbers_that_are_not_finite_are_read(tmp_path):
    (tmp_path / "options.yaml").write_text("environment: CartPole-v1\nstop_at_return: .inf\n")
    with pytest.raises(ValueError, match="stop_at_return must be a finite number, got inf"):
        parse_config("static", ["--config", str(tmp_path / "options.yaml")], "")


def test_a_preset_of_no_name_is_as_if_it_were_not_given(tmp_path):
    for line in ("", "preset:\n", "run.preset: ~\n"):
        (tmp_path / "options.yaml").write_text(f"environment: HalfCheetah-v5\n{line}")
        assert parse_config("static", ["--config", str(tmp_path / "options.yaml")], "").choices.method == "pgpe"


def test_numbers_are_written_as_numbers_and_values_that_occur_twice_without_aliases():
    value = parse_yaml("{a: 1e-3, b: [2]}")
    value["c"] = value["b"]
    for write in (format_yaml, format_yaml_line):
        assert parse_yaml(write(value)) == {"a": 0.001, "b": [2], "c": [2]}


def test_a_long_number_takes_no_longer_than_a_long_text():
    assert parse_yaml(f"a: {'1' * 200_000}x")["a"].endswith("1x")


@pytest.mark.parametrize(("text", "number"), [("010", 10), ("+7", 7), ("-00", 0), ("08", 8)])
def test_whole_numbers_are_decimal(text, number, tmp_path):
    assert parse_yaml(f"{{a: {text}}}") == {"a": number}
    assert parse_yaml(format_yaml(parse_yaml(f"a: {text}"))) == {"a": number}
    assert yaml.safe_load(format_yaml(parse_yaml(f"a: {text}"))) == {"a": number}
    (tmp_path / "options.yaml").write_text(f"seed: 010\nrun_name: {text}\n")
    config = parse_config("static", ["--config", str(tmp_path / "options.yaml")], "")
    assert (config.run.seed, config.run.run_name) == (10, text)


@pytest.mark.parametrize("text", ["1:30", "1:30.5", "0x10", "0b1", "1_000", "yes", "no", "On", "off"])
def test_other_notations_of_yaml_1_1_are_texts(text):
    assert parse_yaml(f"{{a: {text}}}") == {"a": text}


@pytest.mark.parametrize(
    "text", ["1e-3", "e5", "1e", "0x1e3", "1e5f", "none", "2.0", "010", "1:30", "0x10", "0b1", "1_000", "no", "true"]
)
@pytest.mark.parametrize("write", [format_yaml, format_yaml_line])
def test_texts_stay_texts(write, text):
    for read in (parse_yaml, yaml.safe_load):
        assert read(write({"a": text, text: [text]})) == {"a": text, text: [text]}


def test_a_file_without_end_is_no_file_of_options():
    with pytest.raises(ValueError, match=r"^/dev/zero has more than 1000000 characters"):
        read_yaml(Path("/dev/zero"))


def test_seeds_that_cannot_be_counted_are_refused_before_the_first_is_trained():
    flags = ["--environment", "CartPole-v1", "--seed", str(2**63 - 2)]
    assert parse_config("static", [*flags, "--seeds", "2"], "").run.seeds == 2
    with pytest.raises(ValueError, match=r"^seeds must be <= 2 with seed 9223372036854775806, got 3$"):
        parse_config("static", [*flags, "--seeds", "3"], "")
    with pytest.raises(ValueError, match=r"^seeds must be <= 2 with seed 9223372036854775806, got 3$"):
        EvaluateConfig(path_weights=("a.dat",), seed=2**63 - 2, seeds=3)


def test_options_are_read_as_they_are_written_whatever_the_encoding_of_the_locale(tmp_path):
    path = tmp_path / "options.yaml"
    path.write_bytes(format_yaml({"run_name": "\u00e9"}).encode())
    read = "import sys; from pathlib import Path; from hebbes.files.option_file import read_yaml; "
    read += "print(ascii(read_yaml(Path(sys.argv[1]))))"
    environment = {**os.environ, "LC_ALL": "C", "PYTHONCOERCECLOCALE": "0"}
    done = run_python("-X", "utf8=0", "-c", read, path, env=environment)
    assert done.stdout == "{'run_name': '\\xe9'}\n", done.stderr
