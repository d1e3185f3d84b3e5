"""Who follows a reward that moves: curves of plain, reward-modulated and eligibility-trace plasticity in the T-maze.

    python -m examples.t_maze [--seed 100] [--seeds 5] [--figure FILE.png] [further flags of train_hebbian.py]

Trains each of the three with the settings of the preset, one run a seed, and draws the mean return of the unperturbed
policy over 100 fresh lives against the generation, and the share of rewarded trials of the last one before and after
the good arm changes, over 200 fresh lives: median, least and greatest of the seeds. Prints the figures' last values.
"""

import argparse
from pathlib import Path

import gymnasium
import numpy as np
from jaxtyping import Float, Int, Shaped
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from hebbes.contracts.environment import BatchEnv, EnvStep
from hebbes.contracts.randomness import Purpose, simulator_seed, stream
from hebbes.environments.spec import make_batch_env
from hebbes.environments.stepping_guard import episode_seeds
from hebbes.evaluation.play import environment_for
from hebbes.execution.episode import Agent, run_episode
from hebbes.files.policy_file import SavedPolicy, load_policy
from hebbes.options.command_line import parse_config
from hebbes.recording.metrics import METRICS_CSV, read_metrics
from hebbes.training.config import TrainConfig
from hebbes.training.prepare import prepare
from hebbes.training.run import execute
from hebbes.wrappers.base import BatchWrapper

KINDS = {
    "plain": ["--modulation", "none", "--no_eligibility"],
    "reward": ["--modulation", "reward", "--no_eligibility"],
    "reward and eligibility": ["--modulation", "reward", "--eligibility"],
}
COLOURS = ("#222222", "#4c72b0", "#c44e52")
LIVES = 200
AROUND = np.arange(-10, 10)
"""Trials shown, the change being before trial 0."""
LEAST_TRIALS = 30
"""Of a life, in whose middle third the change is, so that all AROUND it are in the life; the maze's default."""


def main() -> None:
    """Trains, prints and draws."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=100, help="first seed (default 100)")
    parser.add_argument("--seeds", type=int, default=5, help="runs of each kind (default 5)")
    parser.add_argument("--figure", type=Path, default=Path("t_maze.png"), help="picture (default t_maze.png)")
    arguments, further = parser.parse_known_args()
    seeds = range(arguments.seed, arguments.seed + arguments.seeds)
    flags = ["--environment", "TMaze-v0", "--test_episodes", "0", "--print_every", "1000", *further]
    try:
        configs = {kind: [_config([*flags, *KINDS[kind], "--seed", str(seed)]) for seed in seeds] for kind in KINDS}
    except ValueError as error:
        parser.error(str(error))
    figure = Figure(figsize=(9, 3.4), dpi=80, layout="constrained")
    FigureCanvasAgg(figure)
    learning, living = figure.subplots(1, 2)
    for kind, colour in zip(KINDS, COLOURS, strict=True):
        runs = [_trained(config) for config in configs[kind]]
        generations, returns, successes = runs[0][0], *(np.array(part) for part in list(zip(*runs, strict=True))[1:])
        _band(learning, generations, returns, kind, colour)
        _band(living, AROUND, successes, kind, colour)
        last = ", ".join(f"{value:.1f}" for value in returns[:, -1])
        print(f"{kind}: median {np.median(returns[:, -1]):.1f} of seeds {seeds[0]} to {seeds[-1]} ({last})", flush=True)
    learning.set(xlabel="generation", ylabel="return of a life")
    living.set(xlabel="trials since the good arm changed", ylabel="share of rewarded trials", ylim=(-0.03, 1.03))
    living.legend(fontsize="small", loc="lower left")
    figure.savefig(arguments.figure)


def _band(axes: Axes, x: np.ndarray, values: Float[np.ndarray, "seeds x"], label: str, colour: str) -> None:
    axes.fill_between(x, values.min(axis=0), values.max(axis=0), color=colour, alpha=0.15, lw=0)
    axes.plot(x, np.median(values, axis=0), color=colour, label=label)
    axes.grid(alpha=0.3)


def _config(flags: list[str]) -> TrainConfig:
    """The options of a run; ValueError where they make no life with a change in the middle of AROUND."""
    config = parse_config("hebbian", flags, "")
    trials = config.env_kwargs.get("trials", LEAST_TRIALS)
    if trials < LEAST_TRIALS:
        raise ValueError(f"env_kwargs: trials must be >= {LEAST_TRIALS} to be drawn, got {trials}")
    return config


def _trained(config: TrainConfig) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Generations evaluated, their mean returns, and the shares of rewarded trials AROUND the change."""
    (run,) = prepare(config)
    execute(run)
    metrics = read_metrics(run.folder / METRICS_CSV)
    evaluated = ~np.isnan(metrics["eval_return"])
    saved = load_policy(run.folder / "latest.dat")
    return (
        metrics["generation"][evaluated],
        metrics["eval_return"][evaluated],
        rewarded_around_change(saved, config.seed),
    )


def rewarded_around_change(saved: SavedPolicy, seed: int) -> Float[np.ndarray, " trials"]:
    """The share of LIVES in which the trial was rewarded, for trials AROUND the change."""
    seeds = [simulator_seed(seed, Purpose.TEST, episode=life) for life in range(LIVES)]
    rngs = [stream(seed, Purpose.TEST, episode=life) for life in range(LIVES)]
    env = _Recorded(make_batch_env(environment_for(saved.environment), seeds, threads=1, training=False))
    agent, weights = Agent(saved.policy, saved.action_head), np.repeat(saved.weights[np.newaxis], LIVES, axis=0)
    try:
        run_episode(agent, env, weights, 0, rngs, buffers=saved.buffers)
    finally:
        env.close()
    trials = np.array(env.rewards).T
    trials = trials[:, np.abs(trials).max(axis=0) > 0]  # env steps that end a trial, the same in every life
    maze = gymnasium.make("TMaze-v0", **saved.environment.env_kwargs)
    changes = [maze.reset(seed=each)[1]["change"] for each in episode_seeds(seeds, 0)]
    return (np.take_along_axis(trials, np.array(changes)[:, None] + AROUND, axis=1) > 0).mean(axis=0)


class _Recorded(BatchWrapper):
    """Remembers the rewards of every env step; lives are equally long, so that they are those of every copy."""

    def __init__(self, env: BatchEnv):
        super().__init__(env)
        self.rewards: list[Float[np.ndarray, " copies"]] = []

    def step(self, actions: Shaped[np.ndarray, "active ..."], active: Int[np.ndarray, " active"]) -> EnvStep:
        stepped = super().step(actions, active)
        self.rewards.append(stepped.rewards)
        return stepped


if __name__ == "__main__":
    main()
