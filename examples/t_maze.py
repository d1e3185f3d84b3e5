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
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from contracts.randomness import Purpose, simulator_seed, stream
from reporting.metrics import METRICS_CSV, read_metrics
from training.command_line import parse_config
from training.policy_file import SavedPolicy, load_policy
from training.preparation import prepare
from training.run import execute

KINDS = {
    "plain": ["--modulation", "none", "--no_eligibility"],
    "reward": ["--modulation", "reward", "--no_eligibility"],
    "reward and eligibility": ["--modulation", "reward", "--eligibility"],
}
COLOURS = ("#222222", "#4c72b0", "#c44e52")
LIVES = 200
AROUND = np.arange(-10, 10)
"""Trials shown, the change being before trial 0; the change is in the middle third of 30 trials or more."""


def main() -> None:
    """Trains, prints and draws."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=100, help="first seed (default 100)")
    parser.add_argument("--seeds", type=int, default=5, help="runs of each kind (default 5)")
    parser.add_argument("--figure", type=Path, default=Path("t_maze.png"), help="picture (default t_maze.png)")
    arguments, further = parser.parse_known_args()
    flags = ["--environment", "TMaze-v0", "--test_episodes", "0", "--print_every", "1000", *further]
    figure = Figure(figsize=(9, 3.4), dpi=80, layout="constrained")
    FigureCanvasAgg(figure)
    learning, living = figure.subplots(1, 2)
    for (kind, options), colour in zip(KINDS.items(), COLOURS, strict=True):
        seeds = range(arguments.seed, arguments.seed + arguments.seeds)
        runs = [_trained([*flags, *options, "--seed", str(seed)], seed) for seed in seeds]
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


def _trained(flags: list[str], seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Generations evaluated, their mean returns, and the shares of rewarded trials AROUND the change."""
    (run,) = prepare(parse_config("hebbian", flags, ""))
    execute(run)
    metrics = read_metrics(run.folder / METRICS_CSV)
    evaluated = ~np.isnan(metrics["eval_return"])
    saved = load_policy(run.folder / "latest.dat")
    return metrics["generation"][evaluated], metrics["eval_return"][evaluated], rewarded_around_change(saved, seed)


def rewarded_around_change(saved: SavedPolicy, seed: int) -> Float[np.ndarray, " trials"]:
    """The share of LIVES in which the trial was rewarded, for trials AROUND the change."""
    envs = [gymnasium.make("TMaze-v0", **saved.environment.env_kwargs) for _ in range(LIVES)]
    starts = [env.reset(seed=simulator_seed(seed, Purpose.TEST, episode=k)) for k, env in enumerate(envs)]
    weights = np.repeat(saved.weights[None], LIVES, axis=0)
    rngs = [stream(seed, Purpose.TEST, episode=life) for life in range(LIVES)]
    state = saved.policy.initial_state(weights, rngs, saved.buffers)
    observations, rewards, all_rewards, ended = np.stack([o for o, _ in starts]), np.zeros(LIVES, np.float32), [], False
    while not ended:
        outputs = saved.policy.act(weights, observations, rewards, state, saved.buffers)
        steps = [env.step(action) for env, action in zip(envs, outputs.argmax(axis=1), strict=True)]
        observations, rewards = np.stack([step[0] for step in steps]), np.array([step[1] for step in steps], np.float32)
        all_rewards.append(rewards)
        ended = steps[0][2]
    trials = np.array(all_rewards).T
    trials = trials[:, np.abs(trials).max(axis=0) > 0]  # env steps that end a trial, the same in every life
    around = np.array([info["change"] for _, info in starts])[:, None] + AROUND
    return (np.take_along_axis(trials, around, axis=1) > 0).mean(axis=0)


if __name__ == "__main__":
    main()
