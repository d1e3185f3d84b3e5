"""Returns that TD3 reaches, ours and that of Stable-Baselines3, with the same settings and seeds.

    pip install -r tests/hybrids/requirements.txt
    python benchmarks/td3_returns.py --environment Pendulum-v1 --env_steps 20000 --seeds 10 --results returns.json

Both have Stable-Baselines3's defaults (layers of 400 and 300 ReLUs, learning rate 1e-3, batches of 256, 100 random env
steps at the start) and exploration noise of 0.1. The final actor plays 20 episodes of Gymnasium's environment, with the
same start states for both. Results are written after each run, and runs that the file has are not repeated: take a
new file after a change of either program.
"""

import argparse
import json
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import gymnasium
import numpy as np
import torch
from scipy.stats import trim_mean

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import hebbes

EPISODES, START_STEPS, HIDDEN, LEARNING_RATE, BATCH, NOISE = 20, 100, [400, 300], 1e-3, 256, 0.1


def train_ours(environment: str, env_steps: int, seed: int) -> float:
    """The mean return of our actor."""
    options = {
        **{"environment": environment, "algorithm": "td3", "activation": "relu", "critic_activation": "relu"},
        **{"hidden_sizes": HIDDEN, "learning_rate": LEARNING_RATE, "batch_size": BATCH, "start_steps": START_STEPS},
        **{"exploration_noise": NOISE, "max_env_steps": env_steps, "eval_every": env_steps, "eval_episodes": 1},
        **{"test_episodes": 0, "seed": seed, "threads": 1},
    }
    with tempfile.TemporaryDirectory() as folder:
        run = hebbes.train({**options, "folder": folder}, trainer="hybrid", quiet=True)
        policy = hebbes.load_policy(run.folder / "latest.dat")
        space = gymnasium.make(environment).action_space
        assert isinstance(space, gymnasium.spaces.Box)
        center, half = (space.high + space.low) / 2, (space.high - space.low) / 2
        return play(environment, lambda observation: center + half * np.clip(policy.act(observation), -1, 1))


def train_stable_baselines(environment: str, env_steps: int, seed: int) -> float:
    """The mean return of Stable-Baselines3's actor."""
    from stable_baselines3 import TD3
    from stable_baselines3.common.noise import NormalActionNoise

    env = gymnasium.make(environment)
    size = env.action_space.shape or ()
    noise = NormalActionNoise(np.zeros(size), np.full(size, NOISE))
    model = TD3("MlpPolicy", env, action_noise=noise, seed=seed, device="cpu", policy_kwargs={"net_arch": HIDDEN})
    model.learn(env_steps)
    return play(environment, lambda observation: model.predict(observation, deterministic=True)[0])


def play(environment: str, act: Callable[[np.ndarray], np.ndarray]) -> float:
    """The mean return of the episodes."""
    env, returns = gymnasium.make(environment), []
    for episode in range(EPISODES):
        observation, _ = env.reset(seed=10_000 + episode)
        total, done = 0.0, False
        while not done:
            observation, reward, terminated, truncated, _ = env.step(act(observation))
            total, done = total + float(reward), terminated or truncated
        returns.append(total)
    return float(np.mean(returns))


def main() -> None:
    """Trains what the results lack, and prints all values and the interquartile means."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--environment", default="Pendulum-v1")
    parser.add_argument("--env_steps", type=int, default=20_000)
    parser.add_argument("--seeds", type=int, default=10, help="seeds 0, 1, ... (default: 10)")
    parser.add_argument("--results", type=Path, required=True, help="JSON file of the results")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    results = json.loads(arguments.results.read_text()) if arguments.results.exists() else {}
    seeds = range(arguments.seeds)
    for seed in seeds:
        for name, train in (("hebbes", train_ours), ("stable_baselines3", train_stable_baselines)):
            key = f"{name} {arguments.environment} {arguments.env_steps} {seed}"
            if key not in results:
                results[key] = train(arguments.environment, arguments.env_steps, seed)
                arguments.results.write_text(json.dumps(results, indent=1))
    for name in ("hebbes", "stable_baselines3"):
        values = [results[f"{name} {arguments.environment} {arguments.env_steps} {seed}"] for seed in seeds]
        print(f"{name:20} IQM {trim_mean(values, 0.25):.1f}", "of", *(f"{value:.1f}" for value in values))


if __name__ == "__main__":
    main()
