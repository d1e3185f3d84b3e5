"""The one-page example: stands alone, fits a page, runs, and steps by the published formula."""

import ast
from pathlib import Path

import numpy as np
import pytest

from examples import minimal_es
from hebbes.strategies.openai_es import OpenAIES, OpenAIESSettings
from tests.python_process import run_python
from tests.strategies.every_strategy import make_results

EXAMPLE = Path(minimal_es.__file__)


def run_example(*flags: str, cwd: Path) -> list[str]:
    """The lines that the example prints, run away from the repository so that nothing of ours can be imported."""
    return run_python(EXAMPLE, *flags, cwd=cwd).stdout.splitlines()


def test_one_page_and_nothing_of_ours():
    source = EXAMPLE.read_text()
    imports = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Import | ast.ImportFrom)]
    assert all(isinstance(node, ast.Import) for node in imports)
    assert {alias.name for node in imports for alias in node.names} == {"argparse", "gymnasium", "numpy"}
    assert len(source.splitlines()) < 60


def test_runs_and_prints_a_line_a_generation(tmp_path):
    lines = run_example("--generations", "2", "--seed", "3", cwd=tmp_path)
    assert [line.split()[:2] for line in lines[:2]] == [["generation", "0"], ["generation", "1"]]
    assert len(lines) == 3
    assert "over 100 episodes" in lines[2]
    assert lines == run_example("--generations", "2", "--seed", "3", cwd=tmp_path)
    assert lines != run_example("--generations", "2", "--seed", "4", cwd=tmp_path)


@pytest.mark.slow
def test_solves_cartpole(tmp_path):
    last = run_example("--generations", "20", cwd=tmp_path)[-1]
    assert float(last.split()[-1]) >= 475


def test_update_by_hand():
    # Ranks of (30, 10, 20, 10) are 3, 0.5, 2, 0.5 of 3; centered 1/2, -1/3, 1/6, -1/3.
    noise = np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, 2.0], [0.0, -3.0]])
    fitness = np.array([30.0, 10.0, 20.0, 10.0])
    step = np.array([1 / 2 - 1 / 6, -1 / 3 + 2 / 6 + 3 / 3]) * 0.2 / (4 * 0.1)
    moved = minimal_es.update_mean(np.array([1.0, -1.0]), noise, fitness, learning_rate=0.2, sigma=0.1)
    np.testing.assert_allclose(moved, [1 + step[0], -1 + step[1]], rtol=1e-12)


def test_update_is_the_published_sum():
    rng = np.random.default_rng(7)
    noise, fitness, mean = rng.standard_normal((6, 3)), np.array([0.3, -2.0, 9.0, 4.0, 4.5, -7.0]), rng.random(3)
    expected = mean.copy()
    for utility, row in zip([-0.1, -0.3, 0.5, 0.1, 0.3, -0.5], noise, strict=True):
        expected += 0.05 / (6 * 0.02) * utility * row
    np.testing.assert_allclose(minimal_es.update_mean(mean, noise, fitness, 0.05, 0.02), expected, rtol=1e-12)


@pytest.mark.parametrize("returns", [0.0, 500.0])
def test_members_that_all_tie_move_nothing(returns):
    mean = np.array([0.25, -4.0])
    assert np.array_equal(minimal_es.update_mean(mean, np.eye(4, 2), np.full(4, returns), 0.2, 0.1), mean)


def test_steps_as_the_toolkits_own_strategy_does():
    settings = OpenAIESSettings(
        population_size=12, learning_rate=0.3, sigma=0.2, fitness_shaping="centered_rank", weight_penalty=0.0
    )
    strategy = OpenAIES(settings, np.linspace(-1, 1, 5, dtype=np.float32), seed=0)
    population, mean = strategy.ask(0), strategy.mean.astype(np.float64)
    noise = (population.weights(range(12)).astype(np.float64) - mean) / 0.2
    fitness = np.array([3.0, 1.0, 1.0, 7.0, -2.0, 0.0, 9.0, 9.0, 4.0, 5.0, 6.0, 8.0])
    expected = minimal_es.update_mean(mean, noise, fitness, 0.3, 0.2)
    strategy.tell(population, make_results(population, np.append(fitness, 0.0)))
    assert strategy.mean == pytest.approx(expected, abs=1e-5)
