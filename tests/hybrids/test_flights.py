"""Jobs that are under way, as a checkpoint keeps them."""

import numpy as np
import pytest

import hebbes
from hebbes.files.checkpoint import load_newest_checkpoint
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


def test_an_array_that_jobs_share_is_kept_once():
    critics, rows = np.ones((2, 3), np.float32), [np.full(2, number, np.float32) for number in range(3)]
    flights = [
        Flight(jobs.IndividualJob(number, 0, False, True, 1, 5, 9, rows[number], critics)) for number in range(3)
    ]
    state = pack_flights(flights)
    assert sum(array.shape == (2, 3) for array in state.arrays.values()) == 1
    again = unpack_flights(state)
    assert [flight.job.row.tolist() for flight in again] == [row.tolist() for row in rows]
    assert all(flight.job.critics is again[0].job.critics for flight in again)
    assert (again[0].job.critics == critics).all()


def test_the_individuals_that_learn_from_the_same_critics_share_them(tmp_path):
    options = {
        **{"environment": "Pendulum-v1", "algorithm": "aes_rl", "hidden_sizes": [8], "threads": 1, "mean_scale": 1.0},
        **{"start_steps": 200, "max_env_steps": 1600, "batch_size": 8, "actor_workers": 4, "rl_share": 0.9},
        **{"eval_episodes": 1, "test_episodes": 0, "folder": str(tmp_path), "checkpoint_every": 1},
    }
    run = hebbes.train(options, trainer="hybrid", quiet=True)
    state = load_newest_checkpoint(run.folder / "checkpoint")[0].state
    learning = [each.job for each in unpack_flights(state) if each.job.kind == "individual" and each.job.is_rl]
    assert len(learning) > 1
    assert len({id(job.critics) for job in learning}) == len({job.critics_version for job in learning})
