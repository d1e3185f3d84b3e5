"""Tries a user's own policy and strategy before a run starts, and checks what its parts return during it.

Objects that were tried are thrown away, so a trial changes nothing in the run. Tests check our own classes.
"""

from collections.abc import Callable, Mapping, Sequence
from inspect import signature
from numbers import Integral
from typing import Any, TypeVar

import numpy as np
from jaxtyping import Float32, Shaped

from hebbes.contracts.engine import EngineError
from hebbes.contracts.errors import ForeignExitError, describe_with_traceback
from hebbes.contracts.notices import Notice
from hebbes.contracts.plain_values import is_plain_array
from hebbes.contracts.policy import Buffers, Layout, LowRankWeights, Policy, State, Weights
from hebbes.contracts.population import Population
from hebbes.contracts.randomness import Purpose, make_generator
from hebbes.contracts.strategy import Strategy
from hebbes.contracts.trainer import AllFailedError, Segment, SegmentSizeError, TrainerState, UnitResult
from hebbes.registry.users_classes import convert_errors, is_users_class
from hebbes.training.advice import TrainingError

Returned = TypeVar("Returned")

_PASSED = (EngineError, ForeignExitError, FloatingPointError, TrainingError, AllFailedError, SegmentSizeError)
"""What says by itself what is wrong."""


def try_policy(
    name: str,
    policy: Policy,
    weights: Float32[np.ndarray, " params"],
    buffers: Buffers,
    observation: Shaped[np.ndarray, "*shape"],
    rank: int = 0,
) -> None:
    """Lets members with a user's policy act once; ValueError if it breaks the contract of policies.

    A `rank` that is not 0 is that of the members' noise.
    """
    if not is_users_class(name):
        return
    with convert_errors("policy", name):
        count = 3 if policy.num_outputs == 2 else 2  # so that transposed outputs have another shape
        members, allowed = range(count), (count, policy.num_outputs)
        check_finite_row("initial_params", weights, policy.layout)
        rows = weights + np.arange(count, dtype=np.float32)[:, np.newaxis] / 10
        seen = np.repeat(observation[np.newaxis], count, axis=0)
        if seen.dtype.kind == "f":  # a whole number may be an index
            seen = seen + np.arange(count, dtype=seen.dtype).reshape(-1, *[1] * (seen.ndim - 1))
        outputs = _act(policy, rows, seen, members, buffers)
        if not (is_plain_array(outputs) and outputs.dtype.kind == "f" and outputs.shape == allowed):
            raise ValueError(f"act must return floats of shape {allowed} for {count} members, got {_describe(outputs)}")
        if not np.isfinite(outputs[0]).all():
            raise ValueError("act must return finite numbers, and does not for an observation of zeros")
        alone = [_act(policy, rows[[each]], seen[[each]], [each], buffers) for each in members]
        if not _are_close(outputs, np.concatenate(alone)):
            raise ValueError(
                "act must give a member the same outputs alone as among others: does it mix them, or draw at random?"
            )
        if rank:
            factors = policy.layout.make_factor_layout(rank)
            noise = np.zeros((count, factors.num_params), np.float32)
            _act(policy, LowRankWeights(weights, noise, policy.layout, factors), seen, members, buffers)


def _act(
    policy: Policy, weights: Weights, seen: Shaped[np.ndarray, "members ..."], members: Sequence[int], buffers: Buffers
) -> Float32[np.ndarray, "members outputs"]:
    """The outputs of these members at the start of their episodes; ValueError if their state or weights are wrong."""
    before = [each.copy() for each in _list_arrays(weights)]
    rngs = [make_generator(0, Purpose.TEST, member=member) for member in members]
    state = policy.initial_state(weights, rngs, buffers)
    _check_state(state, len(members))
    arguments = weights, seen, np.zeros(len(members), np.float32), state, buffers
    outputs = policy.act(*arguments)
    outputs = outputs.copy() if isinstance(outputs, np.ndarray) else outputs  # it may be used again
    policy.act(*arguments)  # in which a plastic policy learns
    if not all(map(np.array_equal, before, _list_arrays(weights))):
        raise ValueError("act must not change the weights: a state that changes them needs a copy")
    return outputs


def try_strategy(name: str, strategy: Strategy, layout: Layout) -> Population:
    """The strategy's first population; ValueError if a user's breaks the contract."""
    if not is_users_class(name):
        return strategy.ask(0)
    with convert_errors("strategy", name):
        _check_parameters(strategy.tell, "population", "results")
        check_finite_row("mean", strategy.mean, layout)
        state = strategy.state_dict()
        check_state_dict(state)
        strategy.load_state_dict(state)
        population = strategy.ask(0)
        check_population(population)
        member = population.weights(range(1))
        if not isinstance(member, LowRankWeights):
            if not is_plain_array(member):
                raise ValueError(f"weights of the population must be an array, got {_describe(member)}")
            check_finite_row("weights of the population's member 0", member[0], layout)
        return population


def try_growth(name: str, strategy: Strategy, first: Population) -> None:
    """Asks a user's strategy for twice the members of its first population; ValueError if they begin otherwise."""
    if not is_users_class(name):
        return
    with convert_errors("strategy", name):
        size = len(first) - 1
        larger = strategy.ask(0, 2 * size)
        check_population(larger, 2 * size)
        some = [0, size - 1]
        before, after = (_list_arrays(each.weights(some)) for each in (first, larger))
        if not all(map(_are_close, before, after)):
            raise ValueError(f"ask must return the same first members when it is asked for more: {some} differ")


def _are_close(one: np.ndarray, other: np.ndarray) -> bool:
    """Whether they are equal but for the last bits, which may depend on who shares a batch."""
    return one.shape == other.shape and np.allclose(one, other, rtol=1e-3, atol=1e-5, equal_nan=True)


def _list_arrays(weights: Weights) -> list[np.ndarray]:
    return [weights.center, weights.noise] if isinstance(weights, LowRankWeights) else [np.asarray(weights)]


def call_part(
    source: object, what: str, call: Callable[[], Returned], check: Callable[[Returned], None] = lambda returned: None
) -> Returned:
    """What a method of a trainer's part returns. `source` is the trainer, whose text names the part.

    TrainingError if the method raises, because a user's may raise anything, or if `check` raises ValueError.
    """
    try:
        returned = call()
    except _PASSED:
        raise
    except Exception as error:
        raise TrainingError(f"{source}: {what} raised {describe_with_traceback(error)}") from error
    try:
        check(returned)
    except ValueError as error:
        raise TrainingError(f"{source}: {error}") from error
    return returned


def check_finite_row(what: str, row: Any, layout: Layout) -> None:
    """ValueError if this is not a row of finite parameters for the layout."""
    check_row(what, row, layout)
    if not np.isfinite(row).all():
        raise ValueError(f"{what} must be finite")


def _check_parameters(method: Callable[..., Any], *expected: str) -> None:
    """ValueError for a method that does not take these arguments by position, as of an earlier version."""
    parameters = signature(method)
    try:
        parameters.bind(*expected)
    except TypeError as error:
        raise ValueError(
            f"{method.__name__} must take ({', '.join(expected)}) (see hebbes/contracts/strategy.py), its parameters "
            f"are {parameters}"
        ) from error


def check_row(what: str, row: Any, layout: Layout) -> None:
    """ValueError if this is not a row of parameters for the layout."""
    length = layout.num_params
    if not (is_plain_array(row) and row.dtype == np.float32 and row.shape == (length,)):
        raise ValueError(f"{what} must be float32 of shape ({length},), got {_describe(row)}")


def _check_state(state: State, count: int) -> None:
    """ValueError for a state that is not a tree of arrays whose first axis is that of the members."""
    if type(state) is dict:  # a named tuple or the like could not be made again for fewer members
        state = tuple(state.values())
    if type(state) in (tuple, list):
        for branch in state:
            _check_state(branch, count)
    elif state is not None and not (is_plain_array(state) and state.shape[:1] == (count,)):
        wanted = f"arrays with the {count} members first, in plain tuples, lists and dicts"
        raise ValueError(f"initial_state must hold {wanted}, got {_describe(state)}")


def check_population(population: Any, num_members: int | None = None) -> None:
    """ValueError if this is not what `Strategy.ask` must return."""
    lacking = [name for name in ("__len__", "weights") if not callable(getattr(population, name, None))]
    if lacking:
        raise ValueError(
            f"ask must return a population (hebbes/contracts/population.py), got {_describe(population)}, "
            f"which lacks {', '.join(lacking)}"
        )
    if len(population) < 2:
        raise ValueError(f"ask must return members and, last, the mean policy, got {len(population)} in all")
    if num_members is not None and len(population) != num_members + 1:
        raise ValueError(f"ask must return {num_members} members and the mean policy, got {len(population)} in all")


def check_state_dict(state: Any) -> None:
    """ValueError if this is not arrays by name."""
    from hebbes.files.checkpoint import check_arrays  # imports safetensors

    if not isinstance(state, Mapping):
        raise ValueError(f"state_dict must return plain NumPy arrays by name, got {_describe(state)}")
    for each, array in state.items():
        if not (isinstance(each, str) and is_plain_array(array)):
            raise ValueError(f"state_dict must return plain NumPy arrays by name, got {_describe(array)} for {each!r}")
    check_arrays(state)


def check_trainer_state(state: Any) -> None:
    """ValueError if this is not what `Trainer.get_state` must return."""
    if not isinstance(state, TrainerState):
        raise ValueError(f"get_state must return a TrainerState (hebbes/contracts/trainer.py), got {_describe(state)}")
    for name in ("arrays", "values", "segments"):
        if not isinstance(found := getattr(state, name), Mapping):
            raise ValueError(f"{name} of get_state must be a mapping of names, got {_describe(found)}")
    for name, segment in state.segments.items():
        if not isinstance(segment, Segment):
            raise ValueError(f"segments of get_state must be Segments, got {_describe(segment)} for {name!r}")


def check_unit_result(result: Any) -> None:
    """ValueError if this is not what `Trainer.advance` must return."""
    if not isinstance(result, UnitResult):
        raise ValueError(f"advance must return a UnitResult (hebbes/contracts/trainer.py), got {_describe(result)}")
    if not isinstance(result.env_steps, Integral) or result.env_steps < 0:
        raise ValueError(f"env_steps must be a whole number >= 0, got {_describe(result.env_steps)}")
    if not all(isinstance(each, Notice) for each in result.notices):
        raise ValueError("notices must be Notices (hebbes/contracts/notices.py)")
    check_metrics(result.metrics)


def check_metrics(metrics: Any) -> None:
    """ValueError if this is not names with numbers."""
    if not (isinstance(metrics, Mapping) and all(isinstance(each, str) for each in metrics)):
        raise ValueError(f"metrics must be a mapping of names to numbers, got {_describe(metrics)}")
    for each, value in metrics.items():
        if not each.isprintable() or "," in each or each.strip() != each or not each:
            raise ValueError(f"metrics must have names without commas and line breaks, got {each!r}")
        if not _is_number(value):
            raise ValueError(f"metrics must be numbers, got {_describe(value)} for {each!r}")


def _is_number(value: Any) -> bool:
    try:
        float(value)
    except (TypeError, ValueError, OverflowError):
        return False
    return not isinstance(value, (str, bytes))


def _describe(value: Any) -> str:
    """A value in a few words, for messages."""
    if is_plain_array(value):
        return f"{value.dtype} of shape {value.shape}"
    if isinstance(value, int) and value.bit_length() > 64:
        return f"an int of {value.bit_length()} bits"
    return repr(value) if value is None or isinstance(value, (str, int, float)) else f"a {type(value).__name__}"
