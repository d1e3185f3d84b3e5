"""Flights: jobs that are under way, and how checkpoints keep them."""

from collections.abc import Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from hebbes.contracts.engine import Engine
from hebbes.contracts.plain_values import select_arrays
from hebbes.contracts.trainer import TrainerState
from hebbes.hybrids.jobs import (
    CriticsAnswer,
    CriticsJob,
    IndividualAnswer,
    IndividualJob,
    MeanAnswer,
    MeanJob,
    Setup,
    play_individual,
    play_mean,
    submit_gradients,
    train_critics,
)

if TYPE_CHECKING:
    from hebbes.hybrids.core.learner import Learner

Job: TypeAlias = IndividualJob | MeanJob | CriticsJob

KINDS: dict[str, tuple[type[Any], type[Any]]] = {
    IndividualJob.kind: (IndividualJob, IndividualAnswer),
    MeanJob.kind: (MeanJob, MeanAnswer),
    CriticsJob.kind: (CriticsJob, CriticsAnswer),
}
"""Kind of a job -> its class, and that of its answer."""


@dataclass(eq=False)
class Flight:
    """A job that is under way: it has not yet had its effect."""

    job: Job
    answer: Any = None
    ticket: int | None = None
    """The engine's, as long as the job is to be collected."""
    submitted: float = 0.0
    """When it was submitted."""

    def submit(self, engine: Engine, setup: Setup, learner: "Learner") -> None:
        """Submits the job. What it learns from are the learner's replay, and its critics if it trains them.

        New individuals come last. With fewer workers than jobs, critics and mean would else fall far behind them.
        """
        job = self.job
        self.submitted = perf_counter()
        if isinstance(job, MeanJob):
            self.ticket = engine.submit(play_mean, setup, job.number, job.row, urgent=True)
        elif isinstance(job, CriticsJob):
            critics = learner.critics.get_state()
            self.ticket = submit_gradients(engine, train_critics, setup, job, learner.replay, critics, urgent=True)
        elif job.replay_count is None:
            self.ticket = engine.submit(play_individual, setup, job, None)
        else:
            self.ticket = submit_gradients(engine, play_individual, setup, job, learner.replay)

    def describe(self) -> dict[str, Any]:
        """What the job is, and the versions of its inputs, for a log."""
        inputs = ("number", "mean_version", "critics_version", "replay_count", "individual")
        values = vars(self.job)
        return {"job": self.job.kind, **{name: values[name] for name in inputs if name in values}}

    @property
    def replay_count_in_use(self) -> int | None:
        """The `replay_count` of the view that the job may draw from at this moment; None if there is none."""
        return None if self.ticket is None or isinstance(self.job, MeanJob) else self.job.replay_count


def pack_flights(flights: Sequence[Flight]) -> TrainerState:
    """The jobs and the answers that have come, for a checkpoint. An array that several of them share is kept once."""
    packed, arrays = [], {}
    places: dict[int, str] = {}
    for number, flight in enumerate(flights):
        values: dict[str, Any] = {"kind": flight.job.kind}
        for part, fields in (("job", vars(flight.job)), ("answer", vars(flight.answer) if flight.answer else {})):
            for name, value in fields.items():
                if isinstance(value, np.ndarray):
                    own = f"{part}{number}.{name}"
                    place = places.setdefault(id(value), own)
                    if place != own:
                        values.setdefault("shared", {})[own] = place
                    arrays[place] = value
            values[part] = {name: value for name, value in fields.items() if not isinstance(value, np.ndarray)}
        packed.append(values)
    return TrainerState(arrays, {"flights": packed})


def unpack_flights(state: TrainerState) -> list[Flight]:
    """What `pack_flights` was given. The jobs have no tickets. ValueError for those of another version."""
    flights = []
    for number, values in enumerate(state.values["flights"]):
        job_class, answer_class = KINDS[values["kind"]]
        try:
            shared = {own: state.arrays[place] for own, place in dict(values.get("shared", {})).items()}
            arrays = {**state.arrays, **shared}
            flight = Flight(job_class(**values["job"], **select_arrays(f"job{number}", arrays)))
            if values["answer"]:
                flight.answer = answer_class(**values["answer"], **select_arrays(f"answer{number}", arrays))
        except TypeError as error:
            raise ValueError(f"its jobs are of another version of hebbes: {error}") from None
        flights.append(flight)
    return flights
