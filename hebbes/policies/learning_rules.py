"""The learning rules by name, and what keeps learning weights bounded. `hebbes.policies.kernels` computes both.

Their names are those of Najarro & Risi's code (NeurIPS 2020, arXiv 2007.02686).
"""

RULES: dict[str, tuple[str, ...]] = {
    "A": ("A",),
    "AD": ("A", "D"),
    "AD_lr": ("A", "D", "eta"),
    "ABC": ("A", "B", "C"),
    "ABC_lr": ("A", "B", "C", "eta"),
    "ABCD": ("A", "B", "C", "D"),
    "ABCD_lr": ("A", "B", "C", "eta", "D"),
    "ABCD_lr_D_out": ("A", "B", "C", "eta", "D_out"),
    "ABCD_lr_D_in_and_out": ("A", "B", "C", "eta", "D", "D_out"),
}
"""The coefficients of each rule, in the order of the files of that code."""

NEURAL_RULES: dict[str, tuple[bool, bool]] = {
    "neural_9": (False, False),
    "neural_18": (True, False),
    "neural_25": (True, True),
}
"""For each rule, whether it has a second hidden layer, and whether it has biases."""
HIDDEN = 3
"""Units of each hidden layer of a neural rule."""

NORMALIZATIONS = ("max_abs", "none", "clip", "oja", "tanh")
"""What is to keep learning weights bounded; `hebbes.policies.kernels.plastic_layers.plastic_linear` explains each."""


def count_network_params(deep: bool, bias: bool) -> int:
    """The number of parameters of a neural rule."""
    sizes = (2, HIDDEN, HIDDEN, 1) if deep else (2, HIDDEN, 1)
    return sum((sizes[k] + bias) * sizes[k + 1] for k in range(len(sizes) - 1))
