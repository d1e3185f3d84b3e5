"""Ask and tell: a search with any strategy for any function of rows of numbers, without environments and engines."""

from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np
from jaxtyping import Float, Float32, Float64

from hebbes.contracts.option import check_argument, map_flags
from hebbes.contracts.plain_values import prefix_arrays, select_arrays
from hebbes.contracts.policy import Layout, LowRankWeights, Weights
from hebbes.contracts.population import NoisePopulation, Population
from hebbes.contracts.strategy import Results, Strategy, TakesLayout
from hebbes.contracts.suggestion import suggest_name
from hebbes.policies.mean_squares import compute_mean_squares
from hebbes.registry.former_names import find_current_option_name
from hebbes.registry.lookup import find_class
from hebbes.registry.users_classes import convert_errors, make_instance
from hebbes.strategies.core.restoring import copy_matching_arrays
from hebbes.strategies.core.samplers import LOW_RANK


class Search:
    """A search that maximizes a function, generation by generation. You evaluate the candidates yourself.

    Args:
        strategy: a name, such as "openai_es", or "package.module:Class" for a class of your own.
        initial_mean: the numbers at which the search starts.
        seed: determines all random numbers; a whole number >= 0.
        layout: names and shapes of the arrays in a row of numbers, as `policy.layout`. Only the sampler low_rank of
            openai_es needs it.
        settings: the strategy's settings by name, as on the command line (`train_static.py --strategy NAME --help`).
            Among them is the `weight_penalty` of openai_es, 0.01 by default, which is for networks: it is taken off the
            fitness for large numbers.

    Raises:
        ValueError: there is no such strategy or setting, or a value is not allowed. The message says what is.

    Examples:
        >>> import numpy as np
        >>> import hebbes
        >>> search = hebbes.Search("cma_es", initial_mean=np.zeros(3), seed=0, sigma=0.5, population_size=16)
        >>> for _ in range(40):
        ...     candidates = search.ask()
        ...     metrics = search.tell(-np.square(candidates - 3).sum(axis=1))
        >>> [round(float(number), 2) for number in search.mean]
        [3.0, 3.0, 3.0]
    """

    def __init__(
        self,
        strategy: str,
        initial_mean: Float[np.ndarray, " params"],
        *,
        seed: int = 0,
        layout: Layout | None = None,
        **settings: Any,
    ):
        mean = _check_initial_mean(initial_mean)
        seed = check_argument("seed", seed, int, range=">= 0")
        found = find_class("strategy", check_argument("strategy", strategy, str))
        options = _make_settings(strategy, found.Settings, settings)
        self._strategy: Strategy = make_instance("strategy", strategy, found, options, mean, seed)
        if not isinstance(layout, Layout | None):
            raise TypeError(f"layout must be a Layout, such as policy.layout, got {type(layout).__name__}")
        if isinstance(self._strategy, TakesLayout):
            if layout is not None:
                self._strategy.take_layout(layout)
            elif getattr(options, "sampler", None) == LOW_RANK:
                raise ValueError("sampler low_rank needs the policy's layout: give layout, such as policy.layout")
        self._generation = 0
        self._asked: Population | None = None
        self._mean_squared_weights = np.empty(0)

    @property
    def strategy(self) -> Strategy:
        """The strategy itself.

        Examples:
            >>> import numpy as np
            >>> import hebbes
            >>> type(hebbes.Search("snes", initial_mean=np.zeros(2)).strategy).__name__
            'SNES'
        """
        return self._strategy

    @property
    def mean(self) -> Float32[np.ndarray, " params"]:
        """The search's answer so far: the mean of the distribution, the elite of `ga`, the parent of `one_plus_one`.

        Examples:
            >>> import numpy as np
            >>> import hebbes
            >>> hebbes.Search("snes", initial_mean=np.ones(2)).mean
            array([1., 1.], dtype=float32)
        """
        return np.array(self._strategy.mean, np.float32)

    @property
    def generation(self) -> int:
        """The number of generations so far: how often `tell` was called.

        Examples:
            >>> import numpy as np
            >>> import hebbes
            >>> search = hebbes.Search("snes", initial_mean=np.zeros(2))
            >>> metrics = search.tell(-np.square(search.ask()).sum(axis=1))
            >>> search.generation
            1
        """
        return self._generation

    def ask(self) -> Float32[np.ndarray, "members params"]:
        """The candidates of this generation, one in each row. The last one is `mean`.

        Until `tell` is called, it returns the same candidates again. Raises FloatingPointError when the search cannot
        go on, because it has converged or diverges.

        Examples:
            >>> import numpy as np
            >>> import hebbes
            >>> search = hebbes.Search("openai_es", initial_mean=np.zeros(5), population_size=20)
            >>> search.ask().shape
            (21, 5)
        """
        with np.errstate(over="ignore", invalid="ignore"):
            population = self._strategy.ask(self._generation)
            weights = population.weights(range(len(population)))
            rows = _make_rows(weights)
            self._asked, self._mean_squared_weights = population, compute_mean_squares(weights)
        return rows

    def tell(self, fitness: Float[np.ndarray, " members"]) -> dict[str, float]:
        """Moves the search towards the fitter candidates; returns metrics of the update.

        Args:
            fitness: one number for each row of `ask`, higher is better. NaN is for a candidate that failed, and is
                at least as bad as the worst number.

        Raises:
            ValueError: the candidates were not asked for, or the fitness does not fit them.
            FloatingPointError: the fitness is so large that the gradient overflows.

        Examples:
            >>> import numpy as np
            >>> import hebbes
            >>> search = hebbes.Search("ga", initial_mean=np.zeros(4), population_size=30, parents=5, sigma=0.1)
            >>> for _ in range(60):
            ...     candidates = search.ask()
            ...     metrics = search.tell(-np.square(candidates - 1).sum(axis=1))
            >>> round(float(np.abs(search.mean - 1).max()))
            0
            >>> sorted(metrics)
            ['mean_norm', 'sigma', 'tied_share', 'update_norm', 'update_over_sigma']
        """
        if self._asked is None:
            raise ValueError("tell needs candidates: call ask before each tell")
        values = _check_fitness(fitness, len(self._asked))
        results = Results(values, self._mean_squared_weights, self._sum_noise)
        with np.errstate(over="ignore", invalid="ignore"):  # `ask` refuses a search that diverges
            metrics = self._strategy.tell(self._asked, results)
        self._generation, self._asked = self._generation + 1, None
        return dict(metrics)

    def _sum_noise(
        self, utilities: Float[np.ndarray, "rows members"], powers: Sequence[int]
    ) -> Float64[np.ndarray, "rows params"]:
        """The weighted noise sums over all candidates at once."""
        population = cast(NoisePopulation, self._asked)  # only strategies with such a population ask for sums
        return population.weighted_noise_sums(range(len(population)), utilities, powers)

    def state_dict(self) -> dict[str, np.ndarray]:
        """Everything that changes, as named arrays, for an exact resume. `numpy.savez` can write them.

        Examples:
            >>> import numpy as np
            >>> import hebbes
            >>> sorted(hebbes.Search("one_plus_one", initial_mean=np.zeros(2)).state_dict())
            ['generation', 'strategy.parent', 'strategy.sigma']
        """
        own = {name: np.array(array) for name, array in self._strategy.state_dict().items()}
        return {"generation": np.array(self._generation), **prefix_arrays("strategy", own)}

    def load_state_dict(self, state: Mapping[str, np.ndarray]) -> None:
        """Continues from what `state_dict` of a search with the same strategy, settings and seed returned.

        What follows has the same bits as without the interruption, if `cma_es`, `sep_cma_es`, `xnes`, `cr_fm_nes` and
        the optimizer `clip_up` have as many BLAS threads as before. Candidates that were asked for but not told must be
        asked for again. Raises ValueError or KeyError for the state of another strategy.

        Examples:
            >>> import numpy as np
            >>> import hebbes
            >>> first, second = (hebbes.Search("snes", initial_mean=np.zeros(2), seed=7) for _ in range(2))
            >>> metrics = first.tell(-np.square(first.ask() - 1).sum(axis=1))
            >>> second.load_state_dict(first.state_dict())
            >>> np.array_equal(first.ask(), second.ask())
            True
        """
        count = copy_matching_arrays({"generation": np.array(0)}, {"generation": state["generation"]})["generation"]
        if count < 0:
            raise ValueError(f"generation must be >= 0, got {count}")
        own = select_arrays("strategy", state)
        if foreign := state.keys() - {"generation", *prefix_arrays("strategy", own)}:
            raise ValueError(f"{min(foreign)} is not expected: names other than generation begin with strategy.")
        self._strategy.load_state_dict(own)
        self._generation, self._asked = int(count), None


def _check_initial_mean(initial_mean: Any) -> Float32[np.ndarray, " params"]:
    """The mean in float32; ValueError if it cannot be one."""
    try:
        with np.errstate(over="ignore"):  # too large for float32 is refused below
            mean = np.asarray(initial_mean).astype(np.float32, casting="same_kind")
    except (TypeError, ValueError) as error:
        raise ValueError(f"initial_mean must be an array of numbers: {error}") from error
    if mean.ndim != 1 or len(mean) == 0:
        raise ValueError(f"initial_mean must have one dimension and at least one number, got shape {mean.shape}")
    if not np.isfinite(mean).all():
        raise ValueError(f"initial_mean must have finite float32 numbers, got {mean[~np.isfinite(mean)][0]}")
    return mean


def _make_settings(strategy: str, kind: type[Any], given: Mapping[str, Any]) -> Any:
    """The strategy's settings; ValueError for an unknown name, with a suggestion."""
    known, settings = map_flags(kind), {}
    for name, value in given.items():
        current = find_current_option_name(name, known)
        if current not in known:
            hint = suggest_name(name, list(known)) or ","
            raise ValueError(f"unknown setting {name!r} of strategy {strategy!r}{hint} known: {', '.join(known)}")
        if known[current] in settings:
            raise ValueError(f"{current} is given under two of its names")
        settings[known[current]] = value
    with convert_errors("strategy", strategy):
        return kind(**settings)


def _make_rows(weights: Weights) -> Float32[np.ndarray, "members params"]:
    """One row of numbers for each member."""
    if isinstance(weights, LowRankWeights):
        from hebbes.policies.layers import make_rows  # imports a compiler, which all other searches can do without

        return make_rows(weights, weights.layout)
    return np.asarray(weights, np.float32)


def _check_fitness(fitness: Any, num_members: int) -> Float64[np.ndarray, " members"]:
    """The fitness in a new float64 array; ValueError if it does not fit the candidates."""
    try:
        given = np.asarray(fitness)
    except (TypeError, ValueError) as error:
        raise ValueError(f"fitness must be an array of numbers: {error}") from error
    if given.dtype.kind not in "biufO":
        raise ValueError(f"fitness must be an array of real numbers, got {given.dtype}")
    if given.dtype == object and any(value is None for value in given.flat):  # NumPy would take it for NaN
        raise ValueError("fitness must be an array of real numbers, got None; does its function return nothing?")
    try:
        values = given.astype(np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"fitness must be an array of real numbers: {error}") from error
    if values.shape != (num_members,):
        raise ValueError(f"fitness must have one number for each of the {num_members} candidates, got {values.shape}")
    if (infinite := np.isinf(values)).any():
        first = int(infinite.argmax())
        raise ValueError(f"fitness must be finite, or NaN for a failed candidate, got {values[first]} for row {first}")
    return values
