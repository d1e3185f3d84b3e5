"""Files of options that are no such file, or that would cost too much, are refused in one line."""

import pytest

from hebbes.files.option_file import read_yaml


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("a: &x [1]\nb: *x", r"not valid YAML: aliases \(\*name\) are refused here .*line 2, column 4"),
        ("[" * 5000, "not valid YAML: maximum recursion depth exceeded"),
        ("a: 1\n---\nb: 2", "not valid YAML: expected a single document"),
        ("a: !!python/name:os.system", "not valid YAML: could not determine a constructor"),
        ("a: 1\nb: 2001-99-99", "not valid YAML: not a value of its type .*line 2, column 4"),
        ("a: !!bool x", "not valid YAML: not a value of its type"),
        ("a: !!timestamp x", "not valid YAML: not a value of its type"),
        ("a: 1\nb: 2\na: 3", "a given more than once"),
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
