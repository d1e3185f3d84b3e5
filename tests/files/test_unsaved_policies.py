"""A policy that no file could hold, or give back, is refused before it is trained."""

from dataclasses import dataclass, field

import numpy as np
import pytest

from hebbes.environments.environment_spec import EnvironmentSpec
from hebbes.files.policy_file import check_can_be_saved
from hebbes.policies.linear import Linear
from hebbes.policies.mlp import MLP
from hebbes.training.prepare import prepare
from tests.files.saved_policies import SPEC
from tests.training.scripted_runs import make_scripted_config


@dataclass(frozen=True)
class Derived(Linear):
    """Its constructor does not take all of its fields."""

    size: int = field(init=False, default=3)


@dataclass(frozen=True)
class Gains(Linear):
    """Has an array among its fields."""

    gains: np.ndarray = field(default_factory=lambda: np.ones(2))


@dataclass(frozen=True)
class Limits(Linear):
    """Has a number that JSON has not."""

    limits: tuple[tuple[float, float], ...] = ((0.0, float("inf")),)


@dataclass(frozen=True)
class Named(Linear):
    """Has a field of the name that the header of a file gives to the class."""

    name: str = "red"


@dataclass(frozen=True)
class Restless(Linear):
    """Changes a field whenever it is made."""

    scale: float = 1.0

    def __post_init__(self):
        super().__post_init__()
        object.__setattr__(self, "scale", 2 * self.scale)


@dataclass(frozen=True)
class Inner:
    gain: float = 1.0


@dataclass(frozen=True)
class Nested(Linear):
    """Has a dataclass among its fields."""

    inner: Inner = field(default_factory=Inner)


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        (Derived, r"cannot be used: TypeError: .* unexpected keyword argument 'size'"),
        (Gains, r"has a field that no file can hold: Object of type ndarray is not JSON serializable"),
        (Limits, r"has a field that no file can hold: Out of range float values are not JSON compliant"),
        (Named, r"must not have a field called name, which policy files use"),
        (Restless, r"would be read from its file with scale 4.0, not 2.0"),
        (Nested, r"would be read from its file with inner \{'gain': 1.0\}, not Inner\(gain=1.0\)"),
    ],
)
def test_it_is_named_with_the_field(kind, reason, tmp_path):
    name = f"{__name__}:{kind.__name__}"
    with pytest.raises(ValueError, match=f"^policy '{name}' {reason}"):
        prepare(make_scripted_config(tmp_path, policy=name))
    assert not list(tmp_path.iterdir())


def test_options_of_a_simulator_may_be_too_long():
    spec = EnvironmentSpec("CartPole-v1", "gymnasium", {"text": "a" * 70_000})
    with pytest.raises(ValueError, match=r"description of policy and environment has 70\d+ bytes, at most 65536"):
        check_can_be_saved("linear", Linear((4,), 2), "argmax", spec, ())


def test_policies_of_ours_are_accepted():
    check_can_be_saved("mlp", MLP((3,), 2, hidden_sizes=(4, 4)), "tanh", SPEC, ())
