"""Which plasticity follows a reward that moves: plain, reward-modulated and eligibility-trace rules in the T-maze.

    python -m examples.t_maze [--seed 100] [--seeds 5] [--figure FILE.png] [further flags of train_hebbian.py]

Trains each of the three with the settings of the preset, one run per seed, and draws two plots with the median, least
and greatest of the seeds. The first shows the mean policy's mean return over 100 fresh episodes, by generation. The
second shows the last policy's share of rewarded trials before and after the good arm changes, over 200 fresh episodes.
Prints the last returns.
"""

import argparse
from pathlib import Path

import gymnasium
import numpy as np
from jaxtyping import Float, Int, Shaped
from matplotlib.axes import Axes

from hebbes.contracts.environment import BatchEnv, EnvStep
from hebbes.contracts.randomness import Purpose, derive_simulator_seed, make_generator
from hebbes.environments.make_batch_env import make_batch_env
from hebbes.environments.stepping_guard import derive_episode_seeds
from hebbes.evaluation.play import make_evaluation_spec
from hebbes.execution.episode import Agent, run_episode
from hebbes.files.atomic_file import check_place
from hebbes.files.policy_file import SavedPolicy, read_policy_file
from hebbes.options.command_line import parse_config
from hebbes.recording.metrics import METRICS_CSV, read_metrics
from hebbes.reporting.figure import COLORS, SUFFIXES, add_legend, add_title, make_figure, style_axes, write_figure
from hebbes.training.config import TrainConfig
from hebbes.training.prepare import prepare
from hebbes.training.run import execute
from hebbes.wrappers.base import BatchWrapper

KINDS = {
    "plain": ["--modulation", "none", "--no_eligibility"],
    "reward": ["--modulation", "reward", "--no_eligibility"],
    "reward and eligibility": ["--modulation", "reward", "--eligibility"],
}
NUM_EPISODES = 200
TRIALS_SHOWN = np.arange(-10, 10)
"""Trials in the plot; the good arm changes before trial 0."""
LEAST_TRIALS = 30
"""Trials of an episode, and the maze's default. The change is in their middle third, so all TRIALS_SHOWN exist."""


def main() -> None:
    """Trains all kinds, prints their last returns and draws the plots."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=100, help="first seed (default 100)")
    parser.add_argument("--seeds", type=int, default=5, help="runs of each kind (default 5)")
    parser.add_argument("--figure", type=Path, default=Path("t_maze.png"), help="image file (default t_maze.png)")
    arguments, further = parser.parse_known_args()
    if arguments.seeds < 1:
        parser.error(f"--seeds must be >= 1, got {arguments.seeds}")
    seeds = range(arguments.seed, arguments.seed + arguments.seeds)
    flags = ["--environment", "TMaze-v0", "--test_episodes", "0", "--print_every", "1000", *further]
    try:
        check_place("--figure", arguments.figure, SUFFIXES)
        configs = {
            kind: [_make_config([*flags, *KINDS[kind], "--seed", str(seed)]) for seed in seeds] for kind in KINDS
        }
    except ValueError as error:
        parser.error(str(error))
    figure = make_figure(9, 3.8)
    return_axes, success_axes = figure.subplots(1, 2)
    for axes in (return_axes, success_axes):
        style_axes(axes)
    for kind, color in zip(KINDS, COLORS, strict=False):
        runs = [_train(config) for config in configs[kind]]
        generations, returns, successes = runs[0][0], *(np.array(part) for part in list(zip(*runs, strict=True))[1:])
        _draw_band(return_axes, generations, returns, kind, color)
        _draw_band(success_axes, TRIALS_SHOWN, successes, kind, color)
        last = ", ".join(f"{value:.1f}" for value in returns[:, -1])
        print(f"{kind}: median {np.median(returns[:, -1]):.1f} of seeds {seeds[0]} to {seeds[-1]} ({last})", flush=True)
    return_axes.set(xlabel="generation", ylabel="return per episode")
    success_axes.set(xlabel="trials since the good arm changed", ylabel="share of rewarded trials", ylim=(-0.03, 1.03))
    add_title(figure, "TMaze-v0")
    add_legend(figure, return_axes)
    write_figure(figure, arguments.figure)


def _draw_band(axes: Axes, x: np.ndarray, values: Float[np.ndarray, "seeds x"], label: str, color: str) -> None:
    axes.fill_between(x, values.min(axis=0), values.max(axis=0), color=color, alpha=0.15, lw=0)
    axes.plot(x, np.median(values, axis=0), color=color, linestyle="-", label=label)


def _make_config(flags: list[str]) -> TrainConfig:
    """The config of a run; ValueError if its episodes are too short for all TRIALS_SHOWN, or if it has a name."""
    config = parse_config("hebbian", flags, "")
    if config.run.run_name is not None:
        raise ValueError("run_name must be left out, because every run has a name of its own")
    trials = config.environment.env_kwargs.get("trials", LEAST_TRIALS)
    if not isinstance(trials, int) or trials < LEAST_TRIALS:
        raise ValueError(f"env_kwargs: trials must be >= {LEAST_TRIALS} to be drawn, got {trials}")
    return config


def _train(config: TrainConfig) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The evaluated generations, their mean returns, and the share of rewarded episodes for each of TRIALS_SHOWN."""
    (run,) = prepare(config)
    execute(run)
    metrics = read_metrics(run.folder / METRICS_CSV)
    evaluated = ~np.isnan(metrics["eval_return"])
    saved = read_policy_file(run.folder / "latest.dat")
    return (
        metrics["generation"][evaluated],
        metrics["eval_return"][evaluated],
        compute_success_around_change(saved, config.run.seed),
    )


def compute_success_around_change(saved: SavedPolicy, seed: int) -> Float[np.ndarray, " trials"]:
    """The share of NUM_EPISODES in which a trial was rewarded, for each of TRIALS_SHOWN."""
    seeds = [derive_simulator_seed(seed, Purpose.TEST, episode=episode) for episode in range(NUM_EPISODES)]
    rngs = [make_generator(seed, Purpose.TEST, episode=episode) for episode in range(NUM_EPISODES)]
    env = _RewardRecorder(make_batch_env(make_evaluation_spec(saved.environment), seeds, threads=1, training=False))
    agent, weights = Agent(saved.policy, saved.action_head), np.repeat(saved.weights[np.newaxis], NUM_EPISODES, axis=0)
    try:
        run_episode(agent, env, weights, 0, rngs, buffers=saved.buffers)
    finally:
        env.close()
    trials = np.array(env.rewards).T
    trials = trials[:, np.abs(trials).max(axis=0) > 0]  # env steps that end a trial, the same in every episode
    maze = gymnasium.make("TMaze-v0", **saved.environment.env_kwargs)
    changes = [maze.reset(seed=each)[1]["change"] for each in derive_episode_seeds(seeds, 0)]
    return (np.take_along_axis(trials, np.array(changes)[:, None] + TRIALS_SHOWN, axis=1) > 0).mean(axis=0)


class _RewardRecorder(BatchWrapper):
    """Records the rewards of every env step; episodes are equally long, so each has all sub-environments."""

    def __init__(self, env: BatchEnv):
        super().__init__(env)
        self.rewards: list[Float[np.ndarray, " envs"]] = []

    def step(self, actions: Shaped[np.ndarray, "active ..."], active: Int[np.ndarray, " active"]) -> EnvStep:
        stepped = super().step(actions, active)
        self.rewards.append(stepped.rewards)
        return stepped


if __name__ == "__main__":
    main()
