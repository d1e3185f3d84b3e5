"""What the methods share. Its modules import PyTorch, and are imported when they are first needed.

The options of the methods are read before anything is imported that takes long, see `hebbes.policies.kernels`.
"""

from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hebbes.hybrids.core import actor_critic, episodes, learner, networks, replay  # noqa: F401
else:

    def __getattr__(name: str) -> ModuleType:
        full_name = f"{__name__}.{name}"
        try:
            return import_module(full_name)
        except ModuleNotFoundError as error:
            if error.name != full_name:
                raise  # PyTorch is not installed
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}") from error
