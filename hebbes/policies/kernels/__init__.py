"""Compiled kernels of the policies. Each module, and with it the compiler, is imported when it is first needed.

Importing the compiler takes longer than reading the options of a command. So other modules write
`from hebbes.policies import kernels` and call `kernels.convolution.conv_kernel(...)`. The first use imports the module
(PEP 562). Later uses find it as an ordinary attribute.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hebbes.policies.kernels import (  # noqa: F401  # type checkers do not run __getattr__
        activations,
        convolution,
        linear,
        low_rank,
        moments,
        neural_rule,
        observations,
        plastic_layers,
    )
else:
    from hebbes.registry.lazy_modules import make_getter

    __getattr__ = make_getter(__name__)
