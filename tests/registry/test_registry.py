"""The classes that names stand for: ours, a user's own, and clear refusals."""

import sys

import pytest

from hebbes.registry.lookup import check_allowed, find_class, suggest_name
from hebbes.registry.tables import TABLES


@pytest.fixture
def gadget(tmp_path, monkeypatch):
    """A kind of class with one name in its table. Its package `gadgets` has other modules and classes too."""
    folder = tmp_path / "gadgets"
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    (folder / "big_wheel.py").write_text("class BigWheel:\n    pass\n")
    (tmp_path / "needs_more.py").write_text("import no_such_package\n")
    mute = "class Mute(Exception):\n    def __str__(self):\n        raise ValueError\nraise Mute\n"
    (tmp_path / "mute.py").write_text(mute)
    (tmp_path / "leaver.py").write_text("import sys\nsys.exit(0)\n")
    (folder / "base.py").write_text("class Shared:\n    pass\n")
    (folder / "copy_cat.py").write_text("from gadgets.base import Shared as CopyCat\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(TABLES, "gadget", {"big_wheel": "gadgets.big_wheel:BigWheel"})
    yield "gadget"
    for name in [name for name in sys.modules if name.split(".")[0] == "gadgets"]:
        del sys.modules[name]


def test_a_name_is_the_class_in_its_table(gadget):
    found = find_class(gadget, "big_wheel")
    assert (found.__module__, found.__name__) == ("gadgets.big_wheel", "BigWheel")


def test_a_users_class_by_module_and_name(gadget):
    assert find_class("wrapper", "gadgets.base:Shared").__name__ == "Shared"


def test_our_own_wrapper():
    assert find_class("wrapper", "bullet_distance").__name__ == "BulletDistance"


def test_an_unknown_name_gets_a_suggestion_and_the_known_ones(gadget):
    with pytest.raises(ValueError, match=r"^unknown gadget 'big_whel', did you mean 'big_wheel'\? known: big_wheel$"):
        find_class(gadget, "big_whel")


@pytest.mark.parametrize("name", ["base", "copy_cat", "__init__", "big_wheel.BigWheel", "", "sys"])
def test_only_the_table_has_names(gadget, name):
    with pytest.raises(ValueError, match=r"^unknown gadget .* known: big_wheel(; a class of yours is .*)?$"):
        find_class(gadget, name)


@pytest.mark.parametrize("kind", ["policy", "strategy", "wrapper"])
def test_the_message_names_the_kind(kind):
    with pytest.raises(ValueError, match=f"^unknown {kind} 'zzz'"):
        find_class(kind, "zzz")


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("no_such_module:Thing", "cannot import 'no_such_module': .*; is its folder in PYTHONPATH[?]"),
        ("needs_more:Thing", "cannot import 'needs_more': .* named 'no_such_package'$"),
        ("mute:Thing", "cannot import 'mute': Mute: <its text cannot be had>$"),
        ("leaver:Thing", "cannot import 'leaver': ForeignExitError: .*leaver.py, line 2, called sys.exit\\(0\\)$"),
        ("gadgets.base:Missing", "has no class 'Missing'"),
        ("gadgets.base:__name__", "has no class '__name__'"),
        (":Thing", "'' is not the name of a module"),
    ],
)
def test_a_users_class_that_is_not_there(gadget, name, reason):
    with pytest.raises(ValueError, match=reason) as caught:
        find_class("wrapper", name)
    assert "\n" not in str(caught.value)
    assert repr(name) in str(caught.value)


def test_suggestions_ignore_case_and_need_some_likeness():
    assert suggest_name("EARLY_STOP", ["early_stop", "resize"]) == ", did you mean 'early_stop'?"
    assert suggest_name("qqq", ["early_stop", "resize"]) == ""


def test_the_line_about_code_not_allowed_has_the_whole_flag_to_give():
    check_allowed(["mine.nets", "mine"], ["mine"])
    with pytest.raises(ValueError, match=r"^needs code from the module 'mine'; .* trust it, give --import mine "):
        check_allowed(["mine", "mine"], [])
    expected = (
        r"^needs code from the modules 'theirs', 'ores'; if you trust them, "
        r"give --import mine theirs ores \(in Python imports=\[\.\.\.\], "
    )
    with pytest.raises(ValueError, match=expected):
        check_allowed(["theirs", "mine.nets", "ores", "theirs"], ["mine"])


@pytest.mark.parametrize("statement", ["from strategies.openai_es import OpenaiEs", "import hebbes.policies.static"])
def test_a_users_module_that_imports_former_names_is_told_where_the_new_ones_are(tmp_path, monkeypatch, statement):
    (tmp_path / "behind.py").write_text(statement + "\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "behind", raising=False)
    with pytest.raises(ValueError, match=r"No module named .*; hebbes is one package now, and CHANGELOG.md lists"):
        find_class("wrapper", "behind:Thing")
