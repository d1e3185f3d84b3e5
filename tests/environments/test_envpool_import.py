"""EnvPool registers all its environments at once, and imports a family when one of them is made."""

import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from importlib.machinery import ModuleSpec
from importlib.util import module_from_spec

import pytest

from hebbes.environments import envpool_import

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
    by_us, by_itself = (
        subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300, check=True).stdout
        for program in (BY_US, BY_ITSELF)
    )
    assert by_us == by_itself


def test_imports_of_others_are_found_as_before():
    finders = list(sys.meta_path)
    assert envpool_import.import_envpool() is sys.modules["envpool"]
    assert sys.meta_path == finders


class Body:
    """A loader whose module needs a second attempt, and looks for a name in itself while it is executed."""

    def __init__(self):
        self.attempts = 0

    def create_module(self, spec):
        return None

    def exec_module(self, module):
        self.attempts += 1
        if self.attempts == 1:
            raise ImportError("not yet")
        with pytest.raises(AttributeError, match=r"module 'late' has no attribute 'number'"):
            module.number  # noqa: B018
        module.number = 3


def test_a_package_is_executed_once_and_again_after_an_error():
    body = Body()
    spec = ModuleSpec("late", envpool_import._OnFirstUse(body))
    late = module_from_spec(spec)
    spec.loader.exec_module(late)
    assert not hasattr(late, "__warningregistry__") and body.attempts == 0
    assert late.__loader__ is late.__spec__.loader is body
    with pytest.raises(ImportError, match="not yet"):
        late.number  # noqa: B018
    assert late.number == 3 and body.attempts == 2
    with pytest.raises(AttributeError, match=r"module 'late' has no attribute 'other'"):
        late.other  # noqa: B018


def test_a_package_may_find_names_by_itself():
    class Own(Body):
        def exec_module(self, module):
            module.__getattr__ = lambda name: f"own {name}"

    late = module_from_spec(spec := ModuleSpec("late", envpool_import._OnFirstUse(Own())))
    spec.loader.exec_module(late)
    assert (late.first, late.second) == ("own first", "own second")


def test_threads_that_ask_at_the_same_time_get_what_one_of_them_has_executed():
    class Slow(Body):
        def exec_module(self, module):
            self.attempts += 1
            time.sleep(0.2)
            module.number = 3

    body = Slow()
    late = module_from_spec(spec := ModuleSpec("late", envpool_import._OnFirstUse(body)))
    spec.loader.exec_module(late)
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(lambda _: late.number, range(4))) == [3] * 4
    assert body.attempts == 1
