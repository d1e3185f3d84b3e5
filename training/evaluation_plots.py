"""The figures of an evaluation of plastic networks: one for each plastic file, and one over several bodies."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from policies.coefficients import coefficients_by_name
from policies.hebbian import Hebbian
from reporting.plasticity_plots import Bar, plot_plasticity, plot_returns_by_body
from training.evaluation import summarise
from training.evaluation_options import Entry
from training.evaluation_report import Evaluated
from training.hebbian_evaluation import HebbianEvaluateConfig
from training.plastic_lives import MAX_ENV_STEPS, recorded_lives

NUM_EPISODES = 5
"""Episodes whose weights are drawn, or all where fewer are played."""


def write_plots(config: HebbianEvaluateConfig, evaluated: Sequence[Evaluated]) -> Iterator[Path]:
    """Writes the figures and yields their paths; OSError or ValueError where that cannot be done."""
    folder = Path(config.plots or "")
    folder.mkdir(parents=True, exist_ok=True)
    for number, path in enumerate(config.path_weights, 1):
        entry = next(each.entry for each in evaluated if each.entry.path == path)  # intact, on its first body
        if isinstance(entry.saved.policy, Hebbian):
            yield _plot_plasticity(config, entry, entry.saved.policy, folder / f"{number}_{Path(path).stem}.png")
    bodies = list(dict.fromkeys(each.entry.body for each in evaluated))
    if len(bodies) > 1:
        yield _plot_bodies(config, evaluated, bodies, folder / "return_by_body.png")


def _plot_plasticity(config: HebbianEvaluateConfig, entry: Entry, policy: Hebbian, png: Path) -> Path:
    lives = recorded_lives(
        entry.saved,
        policy,
        entry.environment,
        episodes=min(config.episodes, NUM_EPISODES),
        seed=config.seed,
        max_env_steps=min(config.max_episode_steps or MAX_ENV_STEPS, MAX_ENV_STEPS),
    )
    if not lives:
        raise ValueError(f"no episode of {entry.path} could begin")
    layers = config.plot_layers or range(1, len(lives[0].trajectories) + 1)
    plot_plasticity(png, entry.path, lives, coefficients_by_name(policy, entry.saved.weights), layers)
    return png


def _plot_bodies(
    config: HebbianEvaluateConfig, evaluated: Sequence[Evaluated], bodies: Sequence[str], png: Path
) -> Path:
    rows: dict[str, dict[str, Bar]] = {}
    for each in evaluated:
        mean = summarise(each.played.returns).mean
        name = f"{config.path_weights.index(each.entry.path) + 1} {each.entry.path} {each.entry.variant}".rstrip()
        rows.setdefault(name, {})[each.entry.body] = Bar(mean.value, mean.low, mean.high, each.entry.seen)
    plot_returns_by_body(png, bodies, rows)
    return png
