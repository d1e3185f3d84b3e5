"""Returns that TD3 reaches, ours and that of Stable-Baselines3, with the same settings and seeds.

    pip install -r tests/hybrids/requirements.txt
    python -m benchmarks.td3_returns --results returns
    python -m benchmarks.td3_returns --results returns --environment HalfCheetah-v5 --env_steps 100000 \
        --start_steps 10000 --num_seeds 5 --figure docs/figures/td3_half_cheetah.png

Both have Stable-Baselines3's defaults (layers of 400 and 300 ReLUs, learning rate 1e-3, batches of 256, `--start_steps`
random env steps at the start) and exploration noise of 0.1. At the end the actor plays 20 episodes of Gymnasium's
environment, with the same start states for both. After every `--eval_every` env steps it plays 10 episodes for the
learning curve, each on its own program's simulator and start states. Each run is
written to a file of its own in the folder of the results, and runs that are there are not repeated: take a new folder
after a change of either program.
"""

import argparse
import json
import tempfile
from collections.abc import Callable
from math import isfinite
from pathlib import Path
from typing import Any, TypeAlias

import gymnasium
import numpy as np
import torch
from scipy.stats import trim_mean

import hebbes
from hebbes.files.atomic_file import write_atomically
from hebbes.reporting.figure import COLORS, add_legend, add_title, make_figure, style_axes, write_figure

HIDDEN, LEARNING_RATE, BATCH, NOISE = [400, 300], 1e-3, 256, 0.1
EVAL_EPISODES, TEST_EPISODES = 10, 20
EVAL_SEED, TEST_SEED = 20_000, 10_000

Curve: TypeAlias = list[tuple[int, float]]
"""Env steps of training, with the mean return of the actor after them."""


def train_ours(arguments: argparse.Namespace, seed: int) -> tuple[Curve, float]:
    """The learning curve and the mean return of the last actor."""
    options = {
        **{"environment": arguments.environment, "algorithm": "td3", "activation": "relu"},
        **{"critic_activation": "relu", "hidden_sizes": HIDDEN, "learning_rate": LEARNING_RATE, "batch_size": BATCH},
        **{"start_steps": arguments.start_steps, "exploration_noise": NOISE, "max_env_steps": arguments.env_steps},
        **{"eval_every": arguments.eval_every, "eval_episodes": EVAL_EPISODES, "test_episodes": 0},
        **{"seed": seed, "threads": 1},
    }
    with tempfile.TemporaryDirectory() as folder:
        run = hebbes.train({**options, "folder": folder}, trainer="hybrid", quiet=True)
        metrics, policy = run.metrics, hebbes.load_policy(run.folder / "latest.dat")
    space = gymnasium.make(arguments.environment).action_space
    assert isinstance(space, gymnasium.spaces.Box)
    center, half = (space.high + space.low) / 2, (space.high - space.low) / 2

    def act(observation: np.ndarray) -> np.ndarray:
        return center + half * np.clip(policy.act(observation), -1, 1)

    points = zip(metrics["env_steps"].tolist(), metrics["eval_return"].tolist(), strict=True)
    curve = [(int(env_steps), value) for env_steps, value in points if isfinite(value)]
    return curve, play(arguments.environment, act, TEST_EPISODES, TEST_SEED)


def train_stable_baselines(arguments: argparse.Namespace, seed: int) -> tuple[Curve, float]:
    """The learning curve and the mean return of the last actor."""
    from stable_baselines3 import TD3
    from stable_baselines3.common.callbacks import ConvertCallback, EveryNTimesteps
    from stable_baselines3.common.noise import NormalActionNoise

    env = gymnasium.make(arguments.environment)
    size = env.action_space.shape or ()
    noise = NormalActionNoise(np.zeros(size), np.full(size, NOISE))
    model = TD3(
        "MlpPolicy",
        env,
        action_noise=noise,
        learning_starts=arguments.start_steps,
        seed=seed,
        device="cpu",
        policy_kwargs={"net_arch": HIDDEN},
    )
    curve: Curve = []

    def act(observation: np.ndarray) -> np.ndarray:
        return model.predict(observation, deterministic=True)[0]

    def evaluate(local: dict[str, Any], _: dict[str, Any]) -> bool:
        curve.append((model.num_timesteps, play(arguments.environment, act, EVAL_EPISODES, EVAL_SEED)))
        return True

    model.learn(arguments.env_steps, callback=EveryNTimesteps(arguments.eval_every, ConvertCallback(evaluate)))
    return curve, play(arguments.environment, act, TEST_EPISODES, TEST_SEED)


def play(environment: str, act: Callable[[np.ndarray], np.ndarray], episodes: int, first_seed: int) -> float:
    """The mean return of the episodes."""
    env, returns = gymnasium.make(environment), []
    for episode in range(episodes):
        observation, _ = env.reset(seed=first_seed + episode)
        total, done = 0.0, False
        while not done:
            observation, reward, terminated, truncated, _ = env.step(act(observation))
            total, done = total + float(reward), terminated or truncated
        returns.append(total)
    return float(np.mean(returns))


TRAINERS = {"hebbes": train_ours, "stable_baselines3": train_stable_baselines}


def load_or_train(arguments: argparse.Namespace, name: str, seed: int) -> dict[str, Any]:
    """The result of a run, from its file or from training, which writes the file."""
    numbers = arguments.env_steps, arguments.start_steps, arguments.eval_every, seed
    path = arguments.results / f"{name}-{arguments.environment}-{'-'.join(map(str, numbers))}.json"
    if not path.exists():
        curve, mean_return = TRAINERS[name](arguments, seed)
        write_atomically(path, json.dumps({"return": mean_return, "curve": curve}).encode())
    result: dict[str, Any] = json.loads(path.read_text())
    return result


def draw(results: dict[str, list[dict[str, Any]]], title: str, path: Path) -> None:
    """Draws the curve of every run, thin, and the interquartile mean of each program, for episodes of one length."""
    figure = make_figure(6.4, 4.0)
    axes = figure.subplots()
    style_axes(axes)
    for color, (name, runs) in zip(COLORS, results.items(), strict=False):
        env_steps = [point[0] for point in runs[0]["curve"]]
        values = np.array([[value for _, value in run["curve"]] for run in runs])
        axes.plot(env_steps, values.T, color=color, linestyle="-", linewidth=0.7, alpha=0.4)
        axes.plot(
            env_steps, trim_mean(values, 0.25), color=color, linestyle="-", label=f"{name}: IQM of {len(runs)} seeds"
        )
    axes.set(xlabel="env steps of training", ylabel=f"mean return of {EVAL_EPISODES} episodes")
    add_title(figure, title)
    add_legend(figure, axes)
    write_figure(figure, path)


def main() -> None:
    """Trains what the results lack, and prints all values and the interquartile means."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--environment", default="Pendulum-v1")
    parser.add_argument("--env_steps", type=int, default=20_000)
    parser.add_argument("--start_steps", type=int, default=100)
    parser.add_argument("--eval_every", type=int, default=5_000)
    parser.add_argument("--seed", type=int, default=0, help="the first seed (default: 0)")
    parser.add_argument("--num_seeds", type=int, default=10)
    parser.add_argument("--results", type=Path, required=True, help="folder of the results")
    parser.add_argument("--figure", type=Path, help="PNG file for the learning curves")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    arguments.results.mkdir(parents=True, exist_ok=True)
    results: dict[str, list[dict[str, Any]]] = {name: [] for name in TRAINERS}
    for seed in range(arguments.seed, arguments.seed + arguments.num_seeds):
        for name, runs in results.items():
            runs.append(load_or_train(arguments, name, seed))
    for name, runs in results.items():
        values = [run["return"] for run in runs]
        print(f"{name:20} IQM {trim_mean(values, 0.25):.1f}", "of", *(f"{value:.1f}" for value in values))
    if arguments.figure:
        draw(results, f"TD3 on {arguments.environment}", arguments.figure)


if __name__ == "__main__":
    main()
