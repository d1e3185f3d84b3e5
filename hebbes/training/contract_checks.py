"""Tries a user's own policy and strategy before a run starts, and checks what a strategy returns during it.

Objects that were tried are thrown away, so a trial changes nothing in the run. Tests check our own classes.
"""

from collections.abc import Callable, Mapping
from inspect import signature
from typing import Any

import numpy as np
from jaxtyping import Float32, Shaped

from hebbes.contracts.engine import EngineError
from hebbes.contracts.errors import describe_with_traceback
from hebbes.contracts.policy import Buffers, Layout, LowRankWeights, Policy, State
from hebbes.contracts.population import Population
from hebbes.contracts.randomness import Purpose, make_generator
from hebbes.contracts.strategy import Results, Strategy
from hebbes.registry.users_classes import convert_errors, is_users_class
from hebbes.training.advice import TrainingError


def try_policy(
    name: str,
    policy: Policy,
    weights: Float32[np.ndarray, " params"],
    buffers: Buffers,
    observation: Shaped[np.ndarray, "*shape"],
) -> None:
    """Lets two members with a user's policy act once on zeros; ValueError if it breaks the contract of policies."""
    if not is_users_class(name):
        return
    count = 2
    with convert_errors("policy", name):
        allowed = (count, policy.num_outputs)  # type: ignore[attr-defined]  # a field that every policy has
        _check_row("initial_params", weights, policy.layout)
        rows = np.repeat(weights[np.newaxis], count, axis=0)
        rngs = [make_generator(0, Purpose.TEST, member=member) for member in range(count)]
        state = policy.initial_state(rows, rngs, buffers)
        _check_state(state, count)
        seen = np.repeat(observation[np.newaxis], count, axis=0)
        outputs = policy.act(rows, seen, np.zeros(count, np.float32), state, buffers)
        if not (isinstance(outputs, np.ndarray) and outputs.dtype.kind == "f" and outputs.shape == allowed):
            raise ValueError(f"act must return floats of shape {allowed} for {count} members, got {_describe(outputs)}")
        if not np.isfinite(outputs).all():
            raise ValueError("act must return finite numbers, and does not for an observation of zeros")


def try_strategy(name: str, make: Callable[[], Strategy], layout: Layout) -> None:
    """Asks a user's strategy for its mean, state and first population; ValueError if it breaks the contract."""
    if not is_users_class(name):
        return
    strategy = make()
    with convert_errors("strategy", name):
        _check_parameters(strategy.tell, "population", "results")
        _check_row("mean", strategy.mean, layout)
        state = strategy.state_dict()
        if not (isinstance(state, Mapping) and all(isinstance(array, np.ndarray) for array in state.values())):
            raise ValueError(f"state_dict must return NumPy arrays by name, got {_describe(state)}")
        strategy.load_state_dict(state)
        population = strategy.ask(0)
        _check_population(population)
        member = population.weights(range(1))
        if not isinstance(member, LowRankWeights):
            _check_row("weights of the population's member 0", member[0], layout)


def ask_population(name: str, strategy: Strategy, generation: int, num_members: int | None = None) -> Population:
    """The population that the strategy returns; TrainingError if it raises or returns anything else."""
    try:
        population = strategy.ask(generation) if num_members is None else strategy.ask(generation, num_members)
    except (FloatingPointError, TrainingError):
        raise
    except Exception as error:  # a user's strategy may raise anything
        raise TrainingError(f"strategy {name!r}: ask raised {describe_with_traceback(error)}") from error
    try:
        _check_population(population)
    except ValueError as error:
        raise TrainingError(f"strategy {name!r}: {error}") from error
    return population


def tell_results(name: str, strategy: Strategy, population: Population, results: Results) -> dict[str, float]:
    """The metrics that the strategy returns; TrainingError if it raises or returns anything else."""
    try:
        metrics = strategy.tell(population, results)
    except (EngineError, FloatingPointError, TrainingError):
        raise
    except Exception as error:  # a user's strategy may raise anything
        raise TrainingError(f"strategy {name!r}: tell raised {describe_with_traceback(error)}") from error
    if not isinstance(metrics, Mapping) or not all(isinstance(each, str) for each in metrics):
        raise TrainingError(
            f"strategy {name!r}: tell must return a mapping of names to numbers, got {_describe(metrics)}"
        )
    for each, value in metrics.items():
        if not _is_number(value):
            raise TrainingError(f"strategy {name!r}: tell must return numbers, got {_describe(value)} for {each!r}")
    return dict(metrics)


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


def _check_row(what: str, row: Any, layout: Layout) -> None:
    length = layout.num_params
    if not (isinstance(row, np.ndarray) and row.dtype == np.float32 and row.shape == (length,)):
        raise ValueError(f"{what} must be float32 of shape ({length},), got {_describe(row)}")
    if not np.isfinite(row).all():
        raise ValueError(f"{what} must be finite")


def _check_state(state: State, count: int) -> None:
    """ValueError for a state that is not a tree of arrays whose first axis is that of the members."""
    if isinstance(state, dict):
        state = tuple(state.values())
    if isinstance(state, (tuple, list)):
        for branch in state:
            _check_state(branch, count)
    elif state is not None and not (isinstance(state, np.ndarray) and state.shape[:1] == (count,)):
        raise ValueError(f"initial_state must hold arrays with the {count} members first, got {_describe(state)}")


def _check_population(population: Any) -> None:
    lacking = [name for name in ("__len__", "weights") if not callable(getattr(population, name, None))]
    if lacking:
        raise ValueError(
            f"ask must return a population (hebbes/contracts/population.py), got {_describe(population)}, "
            f"which lacks {', '.join(lacking)}"
        )
    if len(population) < 2:
        raise ValueError(f"ask must return members and, last, the mean policy, got {len(population)} in all")


def _is_number(value: Any) -> bool:
    try:
        return not isinstance(value, (str, bytes)) and isinstance(float(value), float)
    except (TypeError, ValueError):
        return False


def _describe(value: Any) -> str:
    """A value in a few words, for messages."""
    if isinstance(value, np.ndarray):
        return f"{value.dtype} of shape {value.shape}"
    return repr(value) if value is None or isinstance(value, (str, int, float)) else f"a {type(value).__name__}"
