"""EnvPool is imported without pyplot, and its Jumanji games can still be drawn."""

import subprocess
import sys

from hebbes.environments import envpool_import

PROGRAM = """
import sys
import hebbes.environments.envpool_env as module
assert module.envpool is sys.modules["envpool"]
print("matplotlib" in sys.modules)
env = module.envpool.make_gymnasium("Game2048-v1", num_envs=1, render_mode="rgb_array")
env.reset()
print(env.render().shape, "matplotlib" in sys.modules)
"""


def test_the_renderers_are_imported_when_they_draw():
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout.splitlines() == ["False", "(1, 256, 256, 3) True"]


def test_imports_of_others_are_found_as_before():
    finders = list(sys.meta_path)
    assert envpool_import.import_envpool() is sys.modules["envpool"]
    assert sys.meta_path == finders
