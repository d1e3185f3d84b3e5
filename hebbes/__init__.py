"""A research toolkit that evolves policies for control tasks: static weights, Hebbian rules, gradients with evolution.

`hebbes.train` trains. `hebbes.load_policy` and `hebbes.evaluate` use policy files. `hebbes.Search` is any of our
strategies, for a function of yours. `import hebbes` loads none of them: each is imported when it is first used.

This file runs on Python 3.6 and newer, so that an old Python can still say what is wrong.
"""

from importlib import import_module

__version__ = "0.9.0"

TYPE_CHECKING = False  # type checkers take it for true; importing it from `typing` would cost time

if TYPE_CHECKING:
    from hebbes.evaluation.evaluate import evaluate
    from hebbes.evaluation.loaded_policy import load_policy
    from hebbes.programs.python_training import train
    from hebbes.strategies.search import Search

__all__ = ["Search", "evaluate", "load_policy", "train"]

_PLACES = {
    "Search": "hebbes.strategies.search:Search",
    "evaluate": "hebbes.evaluation.evaluate:evaluate",
    "load_policy": "hebbes.evaluation.loaded_policy:load_policy",
    "train": "hebbes.programs.python_training:train",
}
"""Public name -> "module:attribute"."""

if not TYPE_CHECKING:  # to a type checker, a module with `__getattr__` would have every name

    def __getattr__(name):
        """The public name, imported now; Python calls this function for names that the module does not have yet."""
        if name not in _PLACES:
            raise AttributeError(f"module 'hebbes' has no attribute {name!r}")
        module, _, attribute = _PLACES[name].partition(":")
        found = globals()[name] = getattr(import_module(module), attribute)
        return found


def __dir__() -> "list[str]":
    """The module's names, with the public ones that are not imported yet."""
    return sorted({*globals(), *__all__})
