import numpy as np
import pytest

from hebbes.policies.coefficients import read_coefficients_by_name
from hebbes.policies.hebbian import Hebbian


def test_reads_coefficients_by_name():
    policy = Hebbian((2,), 1, hidden_sizes=(3,), hebb_rule="AD", init_weights="coevolve")
    row = np.zeros(policy.layout.num_params, np.float32)
    for layer in ("dense1_rules", "dense2_rules"):
        policy.layout.view(row[None], layer)[0, :, 1] = 7  # shape (out, coefficients, in): the D of every synapse
    found = read_coefficients_by_name(policy, row)
    assert list(found) == ["A", "D"]
    assert found["A"].tolist() == [0] * 9
    assert found["D"].tolist() == [7] * 9


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"sharing": "modulo", "num_rules": 2, "hebb_rule": "AD"}, {"A": [0, 1], "D": [2, 3]}),
        ({"sharing": "global", "hebb_rule": "neural_9"}, {"neural_9": list(range(9))}),
    ],
)
def test_coefficients_of_shared_and_neural_rules(options, expected):
    policy = Hebbian((2,), 1, hidden_sizes=(3,), **options)
    found = read_coefficients_by_name(policy, np.arange(policy.layout.num_params, dtype=np.float32))
    assert {name: values.tolist() for name, values in found.items()} == expected
