import numpy as np
import pytest

from hebbes.policies.action_heads import HEADS

OUTPUTS = np.array([[0.5, 0.0, 100.0], [-200.0, 1.0, -200.0]], np.float32)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("argmax", [2, 1]),
        ("identity", OUTPUTS),
        ("tanh", [[0.46211716, 0, 1], [-1, 0.76159416, -1]]),
        ("tanh_sigmoid", [[0.46211716, 0.5, 1], [-1, 0.73105858, 0]]),
    ],
)
def test_values(name, expected):
    outputs = OUTPUTS.copy()
    with np.errstate(all="raise", under="ignore"):
        actions = HEADS[name](outputs)
    np.testing.assert_allclose(actions, expected, atol=1e-6)
    assert actions.dtype == (np.int64 if name == "argmax" else np.float32)
    assert np.array_equal(outputs, OUTPUTS)


def test_the_table_is_complete():
    assert set(HEADS) == {"argmax", "identity", "tanh", "tanh_sigmoid"}
