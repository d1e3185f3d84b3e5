"""Mean rules of AES-RL: how far the mean moves towards an individual, given the returns of the two.

Lee, Lee, Shin & Kweon 2020, "An Efficient Asynchronous Method for Integrating Evolutionary and Gradient-based Policy
Search", arXiv 2012.05417; equations from their code, KyunghyunLee/aes-rl, core/population.py. The new mean is

    mu' = (1 - p) mu + p z

Every rule maps the individual's return f, the mean policy's return f_mu (-inf if it failed) and the scale c to p. The
equations have d = f - f_mu. Departures:

- baseline_absolute: F_mu <= 0 <= F_z gives 1 (0.5 if both are 0). Theirs may give 0, or divide by zero.
- An individual whose episode failed moves nothing. A mean policy that failed is worse than every individual that did
  not fail. With baseline_absolute, an individual below the baseline moves nothing even then.
- A scale of the wrong sign is refused.
"""

from collections.abc import Callable
from math import inf, isfinite, tanh
from typing import TypeAlias

MeanRule: TypeAlias = Callable[[float, float, float], float]


def fixed_linear(f: float, f_mu: float, c: float) -> float:
    """p = clip(d / c, -1, 1): the only rule that may be negative, and so move the mean away from an individual."""
    return min(max((f - f_mu) / c, -1.0), 1.0)


def fixed_sigmoid(f: float, f_mu: float, c: float) -> float:
    """p = 1 / (1 + exp(-d / c)), written as a tanh, which cannot overflow."""
    return (1 + tanh((f - f_mu) / c / 2)) / 2


def baseline_absolute(f: float, f_mu: float, c: float) -> float:
    """p = F_z / (F_z + F_mu) with F = f - c, the return above a fixed baseline c; 0 below the baseline."""
    F_z, F_mu = f - c, f_mu - c
    if F_z < 0:
        return 0.0
    if F_mu <= 0:
        return 0.5 if F_z == F_mu else 1.0
    return F_z / (F_z + F_mu)


def baseline_relative(f: float, f_mu: float, c: float) -> float:
    """p = (d + c) / (d + 2 c): a baseline c below the mean policy's return; 0 below the baseline, 0.5 for a tie."""
    d = f - f_mu
    return 1 - c / (d + 2 * c) if d >= -c else 0.0


MEAN_RULES: dict[str, MeanRule] = {
    "fixed_linear": fixed_linear,
    "fixed_sigmoid": fixed_sigmoid,
    "baseline_absolute": baseline_absolute,
    "baseline_relative": baseline_relative,
}


def compute_mean_share(rule: str, f: float, f_mu: float, c: float, negative_ratio: float) -> float:
    """The share p of the way from the mean to the individual, negative shares times `negative_ratio`.

    A return that is NaN or infinite is that of a failed episode. An individual that failed has 0.
    """
    if not isfinite(f):
        return 0.0
    p = MEAN_RULES[rule](f, f_mu if isfinite(f_mu) else -inf, c)
    return p if p >= 0 else p * negative_ratio


def check_mean_scale(rule: str, c: float | None) -> None:
    """Raises ValueError, which names mean_scale, for a scale with which the rule has no meaning."""
    if c is None:
        raise ValueError(
            f"mean_scale must be given with mean_rule {rule}: it is in units of the return, so no default suits all "
            "environments"
        )
    if rule == "baseline_absolute" and c >= 0:
        raise ValueError(
            f"mean_scale must be < 0 with mean_rule {rule}: it is the baseline, a return below which individuals do "
            f"not move the mean, got {c:g}"
        )
    if rule != "baseline_absolute" and c <= 0:
        raise ValueError(
            f"mean_scale must be > 0 with mean_rule {rule}, because it is a difference between returns that the rule "
            f"divides by, got {c:g}"
        )
