"""Making a policy imports no compiler. Every name among its options still has the code that computes it."""

import numpy as np
import pytest

from hebbes.policies import kernels
from hebbes.policies.activations import ACTIVATIONS
from hebbes.policies.base import INITIALIZATIONS
from hebbes.policies.hebbian import Hebbian
from hebbes.policies.initial_weights import COEVOLVE, INITIAL_WEIGHTS
from hebbes.policies.learning_rules import NEURAL_RULES, NORMALIZATIONS, RULES
from hebbes.policies.mlp import MLP
from hebbes.policies.sharing import SHARINGS, format_table_name
from tests.python_process import run_python


def play(policy, env_steps=3):
    rng = np.random.default_rng(0)
    weights = np.stack([policy.initial_params(rng) for _ in range(2)])
    shapes = getattr(policy, "plastic_shapes", {})
    tables = {format_table_name(layer): np.zeros(shape, np.uint32) for layer, shape in shapes.items()}
    state = policy.initial_state(weights, [rng, rng], tables)
    for _ in range(env_steps):
        outputs = policy.act(weights, rng.random((2, 3)), np.ones(2, np.float32), state, tables)
    return outputs


def test_making_a_policy_and_its_first_weights_imports_no_compiler():
    code = (
        "import sys; import numpy as np\n"
        "from hebbes.registry.lookup import find_class, list_names\n"
        "for name in list_names('policy'):\n"
        "    find_class('policy', name)((20, 27, 3), 2).initial_params(np.random.default_rng(0))\n"
        "print('numba' in sys.modules)\n"
    )
    assert run_python("-c", code).stdout == "False\n"


def test_the_kernels_have_no_other_attributes():
    assert not hasattr(kernels, "no_such_module")


def test_a_missing_compiler_is_named():
    code = (
        "import sys; sys.modules['numba'] = None\n"
        "from hebbes.policies import kernels\n"
        "try: kernels.linear\n"
        "except ModuleNotFoundError as error: print(error.name)"
    )
    assert run_python("-c", code).stdout == "numba\n"


@pytest.mark.slow
def test_threads_may_act_first_at_the_same_time():
    code = (
        "from concurrent.futures import ThreadPoolExecutor; from threading import Barrier; import numpy as np\n"
        "from hebbes.policies.hebbian import Hebbian\n"
        "policy, barrier = Hebbian((20, 27, 3), 2, hidden_sizes=(4,)), Barrier(8)\n"
        "weights = policy.initial_params(np.random.default_rng(0))[np.newaxis]\n"
        "def act(_):\n"
        "    state = policy.initial_state(weights, [np.random.default_rng(0)], {})\n"
        "    barrier.wait()\n"
        "    return policy.act(weights, np.ones((1, 20, 27, 3)), np.zeros(1, np.float32), state, {}).tobytes()\n"
        "with ThreadPoolExecutor(8) as pool: print(len(set(pool.map(act, range(8)))))\n"
    )
    assert run_python("-c", code).stdout == "1\n"


def list_choices():
    for name in ACTIVATIONS:
        yield MLP((3,), 2, hidden_sizes=(4,), activation=name)
    for name in INITIALIZATIONS:
        yield MLP((3,), 2, hidden_sizes=(4,), initialization=name)
    for rule in (*RULES, *NEURAL_RULES):
        for normalization in NORMALIZATIONS:
            sharing = "layer" if rule in NEURAL_RULES else "synapse"
            yield Hebbian((3,), 2, hidden_sizes=(4,), hebb_rule=rule, normalization=normalization, sharing=sharing)
    for name in (*INITIAL_WEIGHTS, COEVOLVE):
        yield Hebbian((3,), 2, hidden_sizes=(4,), init_weights=name)
    for name in SHARINGS:
        yield Hebbian((3,), 2, hidden_sizes=(4,), sharing=name, num_rules=5)


def describe_choice(policy):
    defaults = type(policy)((3,), 2, hidden_sizes=(4,))
    changed = {name: value for name, value in vars(policy).items() if value != getattr(defaults, name)}
    return "-".join(map(str, (type(policy).__name__, *changed.values())))


@pytest.mark.slow
@pytest.mark.parametrize("policy", list_choices(), ids=describe_choice)
def test_every_choice_has_the_code_that_computes_it(policy):
    assert np.isfinite(play(policy)).all()
