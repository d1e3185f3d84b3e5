"""Jobs that are under way, as a checkpoint keeps them."""

import numpy as np
import pytest

from hebbes.hybrids import jobs
from hebbes.hybrids.flights import Flight, pack_flights, unpack_flights


def test_an_answer_of_another_version_is_refused():
    row = np.zeros(2, np.float32)
    job = jobs.MeanJob(0, 0, 0, False, 0, 0.0, 1.0, row, row)
    state = pack_flights([Flight(job, answer=jobs.MeanAnswer(fitness=1.0, env_steps=5, faults={}, seconds=0.1))])
    assert unpack_flights(state)[0].answer.env_steps == 5
    answer = state.values["flights"][0]["answer"]
    answer["problem"] = answer.pop("faults")
    with pytest.raises(ValueError, match=r"its jobs are of another version of hebbes: .*'problem'"):
        unpack_flights(state)
