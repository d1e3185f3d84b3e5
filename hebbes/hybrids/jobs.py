"""The jobs of the hybrids: an individual, the mean policy, the critics.

A job says all that its answer depends on, except for what all jobs of a run share (`Setup`), and for the replay, which
stays as it was after `replay_count` transitions. So a worker, a thread or a resumed run gives the same answer. What a
worker learns leaves it only with the answer.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import nan
from time import perf_counter
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from jaxtyping import Float32, Int64, Shaped

from hebbes.contracts.engine import Context, Engine, Rollouts
from hebbes.contracts.policy import Buffers
from hebbes.contracts.randomness import Purpose, make_generator
from hebbes.contracts.trainer import Segment
from hebbes.execution.repeated_population import RepeatedPopulation
from hebbes.execution.transitions import TransitionRecorder
from hebbes.hybrids import core
from hebbes.hybrids.core.settings import Bounds, GradientSettings
from hebbes.policies.mlp import MLP

if TYPE_CHECKING:
    from hebbes.execution.chunks import ChunkEvaluator
    from hebbes.hybrids.core.learner import Gradients
    from hebbes.hybrids.core.replay import Replay, ReplayView

MEAN_EPISODES = 5
"""Episodes of the mean policy for each individual."""
CRITIC_STEPS = 1000
"""Gradient steps of a job of the critics."""


@dataclass(frozen=True)
class Setup:
    """What all jobs and evaluations of a run share."""

    settings: GradientSettings
    policy: MLP
    bounds: Bounds
    seed: int
    buffers: Buffers
    max_episode_steps: int | None

    def make_gradients(self, critics: np.ndarray, replay: "ReplayView") -> "Gradients":
        """Gradient steps that start from these rows of the critics."""
        return core.learner.Gradients(self.settings, self.policy, self.bounds, critics, replay)

    def make_batch_generator(self, kind: int, number: int) -> np.random.Generator:
        """What draws the batches of a job."""
        return make_generator(self.seed, Purpose.GRADIENTS, generation=number, member=kind)


@dataclass(frozen=True, eq=False)
class IndividualJob:
    """Trains an individual, if it is one that is trained, and plays one episode with it."""

    kind: ClassVar[str] = "individual"
    number: int
    mean_version: int
    """Number of individuals that the distribution had been told when this one was drawn."""
    is_random: bool
    """Whether it acts at random instead."""
    is_rl: bool
    """Whether it is trained."""
    critics_version: int
    replay_count: int | None
    """None unless it is trained."""
    actor_steps: int
    row: Float32[np.ndarray, " params"]
    critics: Float32[np.ndarray, "critics critic_params"]
    """Empty unless it is trained."""


@dataclass(frozen=True, eq=False)
class IndividualAnswer:
    """An individual after its episode."""

    fitness: float
    env_steps: int
    q_mean: float
    """Mean estimate of its actions over its training; NaN without any."""
    faults: Mapping[str, int]
    """Why its episode failed; empty if it did not."""
    seconds: float
    """What the job has taken."""
    row: Float32[np.ndarray, " params"]
    transitions: Float32[np.ndarray, "steps numbers"]
    """Rows of the replay."""


@dataclass(frozen=True, eq=False)
class MeanJob:
    """Plays episodes of the mean policy, for an individual that has come back."""

    kind: ClassVar[str] = "mean"
    number: int
    mean_version: int
    individual: int
    """The individual's number."""
    is_rl: bool
    actor_steps: int
    q_mean: float
    fitness: float
    """The individual's return."""
    row: Float32[np.ndarray, " params"]
    individual_row: Float32[np.ndarray, " params"]


@dataclass(frozen=True, eq=False)
class MeanAnswer:
    """What the mean policy's episodes have brought."""

    fitness: float
    """The mean return of those that did not fail; NaN if all failed."""
    env_steps: int
    faults: Mapping[str, int]
    seconds: float


@dataclass(frozen=True, eq=False)
class CriticsJob:
    """Trains the critics on the mean policy's actions. It goes on from the end of the one before it."""

    kind: ClassVar[str] = "critics"
    number: int
    mean_version: int
    replay_count: int
    critic_steps: int
    row: Float32[np.ndarray, " params"]


@dataclass(frozen=True, eq=False)
class CriticsAnswer:
    """The critics after their steps, as `hebbes.hybrids.core.actor_critic.Critics.get_state` names it."""

    loss: float
    seconds: float
    rows: Float32[np.ndarray, "2 critic_params"]
    targets: Float32[np.ndarray, "2 critic_params"]
    adam_mean: Float32[np.ndarray, "2 critic_params"]
    adam_square: Float32[np.ndarray, "2 critic_params"]
    adam_steps: Int64[np.ndarray, "1"]

    @property
    def critics(self) -> dict[str, np.ndarray]:
        """Their state, without loss and seconds."""
        return {name: value for name, value in vars(self).items() if isinstance(value, np.ndarray)}


def submit_gradients(
    engine: Engine,
    function: Callable[..., Any],
    setup: Setup,
    job: "IndividualJob | CriticsJob",
    replay: "Replay",
    *others: Any,
    urgent: bool = False,
) -> int:
    """The ticket of a job that draws from the replay, `function(evaluator, setup, job, view, *others)`."""
    assert job.replay_count is not None
    view = replay.make_view(job.replay_count)
    if engine.shares_memory:
        return engine.submit(function, setup, job, view, *others, urgent=urgent)
    segments = [engine.share(segment) for segment in replay.get_segments().values()]
    return engine.submit(do_elsewhere, function, setup, job, view.extent, others, *segments, urgent=urgent)


def do_elsewhere(
    evaluator: "ChunkEvaluator",
    function: Callable[..., Any],
    setup: Setup,
    job: "IndividualJob | CriticsJob",
    extent: tuple[tuple[int, int], int, int],
    others: Sequence[Any],
    *segments: Segment,
) -> Any:
    """Does a job that draws from a replay on another machine, which is sent only the segments that it lacks."""
    return function(evaluator, setup, job, core.replay.join_segments(segments, extent), *others)


def play_individual(
    evaluator: "ChunkEvaluator", setup: Setup, job: IndividualJob, replay: "ReplayView | None"
) -> IndividualAnswer:
    """Does an individual's job. It needs a replay if the individual is trained."""
    started = perf_counter()
    row, q_mean = (job.row, nan) if replay is None else _train_actor(evaluator, setup, job, replay)
    recorder = _RandomActions(setup.seed, job.number) if job.is_random else None
    rollouts = _play(evaluator, setup, row, 0, range(job.number, job.number + 1), recorder=recorder)
    (transitions,) = rollouts.transitions
    rows = np.empty((0, 0), np.float32)
    if transitions is not None:
        rows = core.replay.make_rows(core.replay.rescale_actions(transitions, *setup.bounds))
    return IndividualAnswer(
        fitness=float(rollouts.fitness[0]),
        env_steps=int(rollouts.env_steps.sum()),
        q_mean=q_mean,
        faults=dict(rollouts.faults),
        seconds=perf_counter() - started,
        row=row,
        transitions=rows,
    )


def play_mean(
    evaluator: "ChunkEvaluator", setup: Setup, number: int, row: Float32[np.ndarray, " params"]
) -> MeanAnswer:
    """Does the job of the mean policy with this number and row. Its start states are not those of individuals."""
    started = perf_counter()
    first = number * MEAN_EPISODES
    rollouts = _play(evaluator, setup, row, 1, range(first, first + MEAN_EPISODES))
    returns = rollouts.returns[np.isfinite(rollouts.returns)]
    return MeanAnswer(
        fitness=float(returns.mean()) if returns.size else nan,
        env_steps=int(rollouts.env_steps.sum()),
        faults=dict(rollouts.faults),
        seconds=perf_counter() - started,
    )


def train_critics(
    evaluator: "ChunkEvaluator",
    setup: Setup,
    job: CriticsJob,
    replay: "ReplayView",
    critics: Mapping[str, Shaped[np.ndarray, "..."]],
) -> CriticsAnswer:
    """Does a job of the critics, from where the last one has ended."""
    started = perf_counter()
    gradients = setup.make_gradients(critics["rows"], replay)
    gradients.critics.set_state(critics)
    target_actor = gradients.actor.copy(job.row[np.newaxis])
    rng = setup.make_batch_generator(1, job.number)
    with gradients.use_threads():
        for _ in range(job.critic_steps):
            evaluator.check_abandoned()
            gradients.train_critics(target_actor, rng)
            gradients.critics.move_targets()
    state: dict[str, Any] = gradients.critics.get_state()
    return CriticsAnswer(gradients.critic_loss, perf_counter() - started, **state)


def _train_actor(
    evaluator: "ChunkEvaluator", setup: Setup, job: IndividualJob, replay: "ReplayView"
) -> tuple[Float32[np.ndarray, " params"], float]:
    """The individual after its gradient steps, and the mean estimate of its actions."""
    gradients = setup.make_gradients(job.critics, replay)
    rows = job.row[np.newaxis].copy()
    actors, rng = gradients.make_actors(rows), setup.make_batch_generator(0, job.number)
    with gradients.use_threads():
        for _ in range(job.actor_steps):
            evaluator.check_abandoned()
            gradients.train_actors(actors, rng)
        actors.fetch_rows()
    return rows[0], gradients.q_mean


def _play(
    evaluator: "ChunkEvaluator",
    setup: Setup,
    row: Float32[np.ndarray, " params"],
    member: int,
    episodes: range,
    *,
    recorder: TransitionRecorder | None = None,
) -> Rollouts:
    """Plays these episodes without noise on the actions. Each member has start states of its own."""
    context = Context(
        purpose=Purpose.TRAINING,
        generation=episodes.start,
        episodes=tuple(episodes),
        members_per_seed=1,
        max_episode_steps=setup.max_episode_steps,
        buffers=setup.buffers,
        collect_transitions=setup.settings.count_actors() > 0 and member == 0,
    )
    population, ids = RepeatedPopulation(row, member + 1), range(member, member + 1)
    return evaluator.evaluate(population, ids, context, max_idle=2 * setup.settings.count_members(), recorder=recorder)


class _RandomActions(TransitionRecorder):
    """Keeps the transitions of an individual whose actions are uniform."""

    def __init__(self, seed: int, number: int):
        super().__init__(num_members=1)
        self._rng = make_generator(seed, Purpose.EXPLORATION, generation=number)

    def explore(self, actions: Shaped[np.ndarray, "rows ..."]) -> Shaped[np.ndarray, "rows ..."]:
        """Uniform actions in [-1, 1]."""
        return self._rng.uniform(-1, 1, actions.shape).astype(actions.dtype)
