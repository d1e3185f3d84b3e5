"""Ask and tell without engines: every strategy by its name, on functions of rows of numbers."""

import doctest

import numpy as np
import pytest

from hebbes.contracts.policy import Layout
from hebbes.strategies import search as search_module
from hebbes.strategies.search import Search
from tests.shape_checks import unchecked
from tests.strategies.every_strategy import (
    SETTINGS,
    START,
    assert_states_equal,
    each_strategy,
    make_strategy,
    run_generations,
    sphere,
)

LAYOUT = Layout({"matrix": (4, 3), "bias": (4,)})
LOW_RANK = {"sampler": "low_rank", "population_size": 40, "sigma": 0.1, "learning_rate": 0.02, "weight_penalty": 0.0}


def make_search(name, seed=0, start=START, **changes):
    return Search(name, start, seed=seed, **{**SETTINGS[name], **changes})


def run_search(search, generations, fitness_of=sphere):
    for _ in range(generations):
        metrics = search.tell(fitness_of(search.ask()))
    return metrics


def fail_some(rows):
    return np.where(np.arange(len(rows)) % 3 == 0, np.nan, sphere(rows))


def test_its_examples_run():
    failed, tried = doctest.testmod(search_module)
    assert failed == 0 and tried > 25


@each_strategy
def test_has_the_bits_of_the_strategy_itself(name):
    search, strategy = make_search(name, seed=3), make_strategy(name, seed=3)
    metrics = run_search(search, 5)
    assert metrics == run_generations(strategy, 5)
    assert search.generation == 5 and search.mean.tobytes() == strategy.mean.tobytes()
    assert type(search.strategy) is type(strategy)
    assert_states_equal((search.strategy.state_dict(), strategy.state_dict()))


@each_strategy
def test_candidates_are_rows_of_float32_and_the_last_is_the_mean(name):
    search = make_search(name)
    candidates = search.ask()
    assert candidates.dtype == np.float32 and candidates.shape[1:] == START.shape
    assert np.array_equal(candidates[-1], search.mean)
    again = search.ask()
    assert np.array_equal(candidates, again)
    candidates += 1
    assert np.array_equal(search.ask(), again)
    mean = search.mean
    mean += 1
    assert np.array_equal(search.mean, START)


@each_strategy
@pytest.mark.parametrize("fitness_of", [fail_some, lambda rows: np.full(len(rows), np.nan)], ids=["some", "all"])
def test_goes_on_when_candidates_fail(name, fitness_of):
    search = make_search(name)
    run_search(search, 2, fitness_of)
    run_search(search, 2)
    assert np.isfinite(search.mean).all() and search.generation == 4


@each_strategy
def test_resumes_exactly_also_through_a_file(name, tmp_path):
    whole, resumed = make_search(name), make_search(name, start=START + 3)
    run_search(whole, 4)
    whole.ask()
    run_search(resumed, 1)
    resumed.ask()
    np.savez(tmp_path / "search.npz", **whole.state_dict())
    with np.load(tmp_path / "search.npz") as state:
        resumed.load_state_dict(state)
    with pytest.raises(ValueError, match="call ask before each tell"):
        resumed.tell(sphere(whole.ask()))
    assert resumed.generation == 4
    for search in (whole, resumed):
        run_search(search, 4)
    assert_states_equal((whole.state_dict(), resumed.state_dict()))
    assert np.array_equal(whole.mean, resumed.mean)


@each_strategy
@unchecked()
def test_a_fitness_of_another_shape_is_refused_and_the_right_one_may_follow(name):
    search = make_search(name)
    fitness = sphere(search.ask())
    for wrong in (fitness[:-1], fitness[:, None], fitness[0]):
        with pytest.raises(ValueError, match=f"^fitness must have one number for each of the {len(fitness)} cand"):
            search.tell(wrong)
    search.tell(list(fitness))
    assert search.generation == 1


@each_strategy
def test_an_unknown_setting_gets_a_suggestion_and_the_known_ones(name):
    message = rf"^unknown setting 'sigme' of strategy '{name}', did you mean 'sigma'\? known: .*sigma"
    with pytest.raises(ValueError, match=message):
        Search(name, START, sigme=0.1)


def test_an_unknown_strategy_gets_a_suggestion():
    with pytest.raises(ValueError, match=r"^unknown strategy 'cmaes', did you mean 'cma_es'\? known: "):
        Search("cmaes", START)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    ("name", "settings"),
    [("snes", {"sigma_learning_rate": 1e6}), ("xnes", {"sigma_learning_rate": 1e6}), ("ars", {"learning_rate": 1e300})],
)
def test_a_search_that_diverges_ends_with_one_error_and_no_warning(name, settings):
    search = Search(name, np.zeros(5), **settings)
    with pytest.raises(FloatingPointError):
        for _ in range(20):
            search.tell(search.ask()[:, 0].astype(float))


@pytest.mark.parametrize("value", [np.inf, -np.inf])
def test_an_infinite_fitness_is_refused(value):
    search = make_search("snes")
    fitness = sphere(search.ask())
    fitness[2] = value
    with pytest.raises(ValueError, match=f"^fitness must be finite, or NaN for a failed candidate, got {value} for ro"):
        search.tell(fitness)


@unchecked()
@pytest.mark.parametrize("value", ["good", "1", 1j, 10**400, [1], None])  # None: a function without return
def test_a_fitness_that_is_no_real_number_is_refused(value):
    search = make_search("snes")
    with pytest.raises(ValueError, match=r"^fitness must (be an array of real numbers|have one number for each)"):
        search.tell([value] * len(search.ask()))


def test_telling_without_asking_or_twice_is_refused():
    search = make_search("snes")
    with pytest.raises(ValueError, match=r"^tell needs candidates: call ask before each tell$"):
        search.tell(np.zeros(3))
    fitness = sphere(search.ask())
    search.tell(fitness)
    with pytest.raises(ValueError, match="call ask before each tell"):
        search.tell(fitness)


def test_short_names_are_taken_as_on_the_command_line():
    short = Search("openai_es", START, popsize=6, lr=0.3, decay=0.9)
    whole = Search("openai_es", START, population_size=6, learning_rate=0.3, learning_rate_decay=0.9)
    assert run_search(short, 3) == run_search(whole, 3)
    with pytest.raises(ValueError, match="population_size is given under two of its names"):
        Search("openai_es", START, popsize=6, population_size=6)
    with pytest.raises(ValueError, match=r"^unknown setting 'lr' of strategy 'ga'"):
        Search("ga", START, lr=0.1)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"sigma": -1}, "^sigma must be a finite number > 0, got -1$"),
        ({"sigma": "large"}, "^sigma must be a number, got 'large'$"),
        ({"sampler": "sobol"}, "^sampler must be one of normal, antithetic, orthogonal, got 'sobol'$"),
        ({"population_size": 3}, "^population_size must be >= 4, got 3$"),
        ({"seed": -1}, "^seed must be >= 0, got -1$"),
        ({"seed": 0.5}, "^seed must be a whole number, got 0.5$"),
        ({"initial_mean": np.zeros((2, 2))}, r"^initial_mean must have one dimension .* got shape \(2, 2\)$"),
        ({"initial_mean": []}, r"^initial_mean must have one dimension .* got shape \(0,\)$"),
        ({"initial_mean": [0.0, 1e39]}, "^initial_mean must have finite float32 numbers, got inf$"),
        ({"initial_mean": ["a"]}, "^initial_mean must be an array of numbers"),
        ({"initial_mean": np.zeros(2, complex)}, "^initial_mean must be an array of numbers"),
    ],
)
@unchecked()
def test_refuses_what_it_cannot_use(arguments, message):
    with pytest.raises(ValueError, match=message):
        Search(**{"strategy": "snes", "initial_mean": START, **arguments})


def test_low_rank_candidates_are_rows_and_climb_a_sphere():
    search = Search("openai_es", np.ones(LAYOUT.num_params), layout=LAYOUT, rank=2, **LOW_RANK)
    candidates = search.ask()
    assert candidates.shape == (41, LAYOUT.num_params) and candidates.dtype == np.float32
    assert candidates[-1] == pytest.approx(search.mean)
    noise = ((candidates[0] - search.mean) / 0.1)[:12].reshape(4, 3)
    assert np.linalg.matrix_rank(noise, tol=1e-4) == 2
    run_search(search, 150)
    assert sphere(search.mean[None])[0] > sphere(np.ones((1, LAYOUT.num_params)))[0] / 20


def test_low_rank_needs_a_layout_of_the_right_size():
    start = np.zeros(LAYOUT.num_params)
    with pytest.raises(ValueError, match=r"^sampler low_rank needs the policy's layout: give layout"):
        Search("openai_es", start, **LOW_RANK)
    with pytest.raises(TypeError, match=r"^layout must be a Layout, such as policy.layout, got dict$"):
        Search("openai_es", start, layout={"offset": (16,)}, **LOW_RANK)
    with pytest.raises(ValueError, match=r"^a layout of 7 parameters for 16$"):
        Search("openai_es", start, layout=Layout({"offset": (7,)}), **LOW_RANK)
    with pytest.raises(ValueError, match=r"^rank must be <= 3, the rank of the largest matrix, got 4$"):
        Search("openai_es", start, layout=LAYOUT, rank=4, **LOW_RANK)
    assert Search("openai_es", start, layout=LAYOUT, rank=3, **LOW_RANK).ask().shape == (41, LAYOUT.num_params)


def test_the_state_of_something_else_is_refused_and_changes_nothing():
    search, other = make_search("snes"), make_search("ars")
    run_search(search, 2)
    before = search.state_dict()
    with pytest.raises((ValueError, KeyError)):
        search.load_state_dict(other.state_dict())
    with pytest.raises(KeyError, match="generation"):
        search.load_state_dict({name: array for name, array in before.items() if name != "generation"})
    with pytest.raises(ValueError, match="foreign"):
        search.load_state_dict({**before, "foreign": np.zeros(1)})
    with pytest.raises(ValueError, match=r"^mean is not expected: names other than generation"):
        search.load_state_dict({name.removeprefix("strategy."): array for name, array in before.items()})
    with pytest.raises(ValueError, match="generation must be >= 0, got -1"):
        search.load_state_dict({**before, "generation": np.array(-1)})
    assert_states_equal((before, search.state_dict()))


@unchecked()
@pytest.mark.parametrize("name", ["snes", "ga", "one_plus_one"])  # the last two have float32
def test_a_state_may_have_gone_through_json(name):
    search, resumed = make_search(name), make_search(name)
    run_search(search, 2)
    resumed.load_state_dict({name: array.tolist() for name, array in search.state_dict().items()})
    assert_states_equal((search.state_dict(), resumed.state_dict()))


USERS_STRATEGY = '''
from dataclasses import dataclass, field
import numpy as np
from hebbes.strategies.core.populations import GaussianPopulation

@dataclass
class MySettings:
    popsize: int = field(default=8, metadata={"help": "number of members"})
    spread: float = field(default=0.3, metadata={"help": "standard deviation"})

class Mine:
    """Moves to the best member."""
    Settings = MySettings
    grows = False
    def __init__(self, settings, initial_mean, seed):
        if settings.spread > 9:
            raise TypeError("too wide")
        self.settings, self.mean, self.seed = settings, initial_mean, seed
    def ask(self, generation, num_members=None):
        return GaussianPopulation(self.mean, self.settings.spread, self.seed, generation, self.settings.popsize)
    def tell(self, population, results):
        self.mean = population.weights([int(np.nanargmax(results.fitness))])[0]
        return {"best": float(np.nanmax(results.fitness))}
    def state_dict(self):
        return {"mean": self.mean}
    def load_state_dict(self, state):
        self.mean = np.array(state["mean"])
'''


@pytest.fixture
def users_strategy(tmp_path, monkeypatch):
    (tmp_path / "strategy_of_a_user.py").write_text(USERS_STRATEGY)
    monkeypatch.syspath_prepend(tmp_path)
    return "strategy_of_a_user:Mine"


def test_a_strategy_of_ones_own_with_plain_settings(users_strategy):
    search = Search(users_strategy, START, popsize=20, spread=0.2)
    assert len(search.ask()) == 21
    run_search(search, 60)
    assert sphere(search.mean[None])[0] > sphere(START[None])[0] / 20
    with pytest.raises(ValueError, match=r"^unknown setting 'sprad' .*, did you mean 'spread'\? known: popsize, spr"):
        Search(users_strategy, START, sprad=0.2)
    with pytest.raises(ValueError, match=r"^strategy 'strategy_of_a_user:Mine' cannot be used: TypeError: too wide"):
        Search(users_strategy, START, spread=10.0)


def test_the_penalty_of_large_weights_counts():
    settings = {"population_size": 20, "sigma": 0.1, "learning_rate": 0.1, "weight_penalty": 1.0}
    search, plain = (Search("openai_es", START, **{**settings, **each}) for each in ({}, {"weight_penalty": 0.0}))
    strategy = make_strategy("openai_es", **settings)
    for each in (search, plain):
        run_search(each, 3)
    run_generations(strategy, 3)
    assert search.mean.tobytes() == strategy.mean.tobytes() != plain.mean.tobytes()
