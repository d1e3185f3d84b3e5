"""The code that a policy file names is imported only if it is ours, or if the user allows it."""

import sys

import pytest

from hebbes.files.policy_file import read_policy_file
from tests.files.saved_policies import expect_refusal, make_saved_policy, make_setter, write_forged_file
from tests.shape_checks import unchecked


@pytest.fixture(scope="module", autouse=True)
def as_for_users():
    """Our own checks refuse the files here, not those of the tests."""
    with unchecked():
        yield


USERS_CODE = """
from pathlib import Path
import hebbes.policies.mlp
Path(__file__).with_suffix(".imported").touch()
class Net(hebbes.policies.mlp.MLP): pass
class Shift: pass
"""


@pytest.mark.parametrize(
    "edit",
    [
        make_setter("policy", "name", value="users_code:Net"),
        make_setter("environment", "wrappers", 0, "name", value="users_code:Shift"),
        make_setter("environment", "training_wrappers", 0, "name", value="users_code:Shift"),
        make_setter("environment", "gymnasium_wrappers", value=[{"name": "users_code:Shift"}]),
        make_setter("environment", "imports", value=["users_code"]),
        make_setter("environment", "environment", value="users_code:Env-v0"),
        make_setter("environment", "env_kwargs", value={"inner": ["users_code:Env-v0"]}),
    ],
)
def test_a_file_cannot_choose_what_is_imported(tmp_path, monkeypatch, edit):
    (tmp_path / "users_code.py").write_text(USERS_CODE)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "users_code", raising=False)
    path = write_forged_file(tmp_path / "best.dat", make_saved_policy(), edit)
    said = expect_refusal(path)
    assert said.startswith(
        "needs code from the module 'users_code'; if you trust it, give --import users_code (in Python"
    )
    assert expect_refusal(path, allow_imports=["users"]).startswith("needs code")
    assert not (tmp_path / "users_code.imported").exists()
    assert read_policy_file(path, allow_imports=["users_code"]).policy_name in ("mlp", "users_code:Net")


def test_the_name_of_a_module_may_be_no_identifier(tmp_path, monkeypatch):
    (tmp_path / "users-code.py").write_text(USERS_CODE)
    monkeypatch.syspath_prepend(tmp_path)
    edit = make_setter("environment", "env_kwargs", value={"inner": ["users-code:Env-v0"]})
    path = write_forged_file(tmp_path / "best.dat", make_saved_policy(), edit)
    assert expect_refusal(path).startswith("needs code from the module 'users-code'")


def test_a_text_with_a_colon_may_be_an_argument(tmp_path):
    texts = {"server": "localhost:5000", "start": "12:30", "layers": ["conv:32"], "url": "http://localhost:5000"}
    edit = make_setter("environment", "env_kwargs", value=texts)
    path = write_forged_file(tmp_path / "best.dat", make_saved_policy(), edit)
    assert read_policy_file(path).environment.env_kwargs == dict(sorted(texts.items()))


def test_our_own_classes_need_no_permission(tmp_path):
    path = write_forged_file(
        tmp_path / "best.dat", make_saved_policy(), make_setter("policy", "name", value="hebbes.policies.mlp:MLP")
    )
    assert read_policy_file(path).policy == make_saved_policy().policy


@pytest.mark.parametrize("name", ["os:system", "hebbes.policies.mlp:dataclass", "hebbes.wrappers.base:Box"])
def test_a_class_that_our_module_only_imports_is_not_ours(tmp_path, name):
    for where in [("policy", "name"), ("environment", "wrappers", 0, "name")]:
        expect_refusal(write_forged_file(tmp_path / "best.dat", make_saved_policy(), make_setter(*where, value=name)))
