"""EnvPool registers all its environments at once, and imports a family when one of them is made."""

import sys

import pytest

from hebbes.environments.envpool_import import import_envpool
from tests.python_process import run_python

PRINT_IDS = "print({name: family for name, (family, *_) in envpool.registration.registry.specs.items()})"

BY_US = f"""
import sys
from hebbes.environments.envpool_env import envpool

def list_libraries():
    names = (name for name in sys.modules if name.startswith("envpool.") and name.endswith("_envpool"))
    return [name for name in names if not name.startswith("envpool.python.")]

assert not list_libraries()
envpool.make_gymnasium("CartPole-v1", num_envs=1).reset()
assert list_libraries() == ["envpool.classic_control.classic_control_envpool"]
assert "matplotlib" not in sys.modules
env = envpool.make_gymnasium("Game2048-v1", num_envs=1, render_mode="rgb_array")
env.reset()
assert env.render().shape == (1, 256, 256, 3)
{PRINT_IDS}
"""

BY_ITSELF = f"import envpool; {PRINT_IDS}"


@pytest.mark.slow
def test_all_ids_are_registered_and_only_the_library_of_a_family_that_is_used_is_loaded():
    by_us, by_itself = (run_python("-c", program).stdout for program in (BY_US, BY_ITSELF))
    assert by_us == by_itself


def test_a_package_that_is_imported_already_is_taken_as_it_is():
    import_envpool()
    families = {name: module for name, module in sys.modules.items() if name.startswith("envpool")}
    assert import_envpool() is sys.modules["envpool"]
    assert {name: sys.modules.get(name) for name in families} == families


@pytest.mark.slow
def test_every_family_can_be_imported_afterwards():
    code = (
        "import importlib, pkgutil; from hebbes.environments.envpool_import import import_envpool; "
        "found = [each.name for each in pkgutil.iter_modules(import_envpool().__path__, 'envpool.') if each.ispkg]; "
        "print(len([importlib.import_module(each).__file__ for each in found]))"
    )
    done = run_python("-c", code)
    assert int(done.stdout) > 10
