"""What the methods share. Most of its modules import PyTorch, and are imported when they are first needed.

The options of the methods are read before anything is imported that takes long, see `hebbes.policies.kernels`.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hebbes.hybrids.core import actor_critic, device, episodes, learner, networks, replay  # noqa: F401
else:
    from hebbes.registry.lazy_modules import make_getter

    __getattr__ = make_getter(__name__)
