"""The state of every strategy has the same bits for any number of threads of the linear algebra library."""

import json
import os

import pytest

from tests.python_process import run_python
from tests.strategies.every_strategy import STRATEGY_NAMES


def compute_digests(folder, threads):
    environment = {
        **os.environ,
        **dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), threads),
    }
    done = run_python("-m", "tests.training.trained_states", folder / threads, env=environment)
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.slow
def test_training_does_not_depend_on_the_number_of_blas_threads(tmp_path):
    one, two = (compute_digests(tmp_path, threads) for threads in ("1", "2"))
    assert one.keys() == set(STRATEGY_NAMES)
    assert [name for name in STRATEGY_NAMES if one[name] != two[name]] == []
