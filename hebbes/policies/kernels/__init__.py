"""Compiled kernels of the policies. Each module, and with it the compiler, is imported when it is first needed.

Importing the compiler takes longer than reading the options of a command. So other modules write
`from hebbes.policies import kernels` and call `kernels.convolution.conv_kernel(...)`. The first use imports the module
(PEP 562). Later uses find it as an ordinary attribute.
"""

from importlib import import_module
from types import ModuleType
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
        simd,
    )
else:

    def __getattr__(name: str) -> ModuleType:
        full_name = f"{__name__}.{name}"
        try:
            return import_module(full_name)
        except ModuleNotFoundError as error:
            if error.name != full_name:
                raise  # the compiler is not installed
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}") from error
