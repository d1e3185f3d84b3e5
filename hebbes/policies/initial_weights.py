"""Initial weights of plastic layers, drawn again for every episode. Kinds and constants: Najarro & Risi's code.

Every function takes a generator and a matrix's shape (out, in) and returns float32. Uniform kinds lie in +-bound.
Sources: Xavier, Glorot & Bengio 2010. Kaiming, He et al. 2015, with the bound of Najarro & Risi's code. Sparse,
Martens 2010, as in `torch.nn.init.sparse_`. Default, the initialization of `torch.nn.Linear`.
"""

from collections.abc import Callable
from math import ceil, sqrt
from typing import TypeAlias

import numpy as np
from jaxtyping import Float32

Shape: TypeAlias = tuple[int, ...]
Matrix: TypeAlias = Float32[np.ndarray, "out in"]
COEVOLVE = "coevolve"
"""Initial weights that are searched instead of drawn."""
_SPARSITY = 0.8


def _draw_uniform(rng: np.random.Generator, shape: Shape, bound: float) -> Matrix:
    return (rng.random(shape, dtype=np.float32) * np.float32(2) - np.float32(1)) * np.float32(bound)


def _draw_normal(rng: np.random.Generator, shape: Shape, deviation: float) -> Matrix:
    return rng.standard_normal(shape, dtype=np.float32) * np.float32(deviation)


def _compute_xavier_bound(shape: Shape, gain: float) -> float:
    return gain * sqrt(6 / sum(shape))


def _draw_sparse(rng: np.random.Generator, shape: Shape) -> Matrix:
    """Every column (the weights of one input) has 80 % zeros, rounded up, in random places."""
    weights = _draw_normal(rng, shape, 0.01)
    ranks = rng.random(shape, dtype=np.float32).argsort(axis=0).argsort(axis=0)
    weights[ranks < ceil(_SPARSITY * shape[0])] = 0
    return weights


INITIAL_WEIGHTS: dict[str, Callable[[np.random.Generator, Shape], Matrix]] = {
    "uni": lambda rng, shape: _draw_uniform(rng, shape, 0.1),
    "normal": lambda rng, shape: _draw_normal(rng, shape, 0.024),
    "uni_big": lambda rng, shape: _draw_uniform(rng, shape, 1.0),
    "xa_uni": lambda rng, shape: _draw_uniform(rng, shape, _compute_xavier_bound(shape, gain=0.3)),
    "xa_uni_big": lambda rng, shape: _draw_uniform(rng, shape, _compute_xavier_bound(shape, gain=1.0)),
    "ka_uni": lambda rng, shape: _draw_uniform(rng, shape, sqrt(0.6 / shape[1])),
    "sparse": _draw_sparse,
    "ones": lambda rng, shape: np.ones(shape, np.float32),
    "zeros": lambda rng, shape: np.zeros(shape, np.float32),
    "default": lambda rng, shape: _draw_uniform(rng, shape, 1 / sqrt(shape[1])),
}
