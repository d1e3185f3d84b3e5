"""A minimal evolution strategy: a linear policy learns to balance CartPole without a gradient.

OpenAI-ES after Salimans et al. 2017, "Evolution Strategies as a Scalable Alternative to Reinforcement Learning"
(arXiv 1703.03864): antithetic noise, centered ranks, and one step along the noise weighted by these ranks.
"""

import argparse

import gymnasium as gym
import numpy as np

POPULATION_SIZE = 20  # members of a generation, in antithetic pairs


def play_episode(env: gym.Env, weights: np.ndarray, seed: int) -> float:
    """The return of one episode, in which the larger output of a linear policy chooses the action."""
    observation, _ = env.reset(seed=seed)
    policy = weights.reshape(-1, len(observation))
    total, done = 0.0, False
    while not done:
        observation, reward, terminated, truncated, _ = env.step(int(np.argmax(policy @ observation)))
        total, done = total + float(reward), terminated or truncated
    return total


def update_mean(
    mean: np.ndarray, noise: np.ndarray, fitness: np.ndarray, learning_rate: float, sigma: float
) -> np.ndarray:
    """The mean after a step towards the fitter of the members `mean + sigma * noise`, which has one row per member."""
    wins = fitness[:, None] > fitness
    ranks = (wins.sum(axis=1) - wins.sum(axis=0)) / (2 * (len(fitness) - 1))  # in [-0.5, 0.5], ties share their rank
    return mean + learning_rate / (len(fitness) * sigma) * ranks @ noise


def main() -> None:
    """Evolves, prints one line per generation, then tests the mean policy on 100 fresh episodes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--generations", type=int, default=50, help="generations to run (default 50)")
    parser.add_argument("--seed", type=int, default=0, help="seed of the noise and the start states (default 0)")
    arguments = parser.parse_args()
    env, rng = gym.make("CartPole-v1"), np.random.default_rng(arguments.seed)
    mean, learning_rate, sigma = np.zeros(4 * 2), 0.2, 0.1
    for generation in range(arguments.generations):
        half = rng.standard_normal((POPULATION_SIZE // 2, len(mean)))
        noise, start = np.concatenate([half, -half]), int(rng.integers(2**31))  # all members meet one start state
        fitness = np.array([play_episode(env, mean + sigma * row, start) for row in noise])
        mean = update_mean(mean, noise, fitness, learning_rate, sigma)
        learning_rate, sigma = max(learning_rate * 0.995, 0.001), max(sigma * 0.999, 0.01)
        print(f"generation {generation}  mean {fitness.mean():.1f}  best {fitness.max():.0f}")
    returns = [play_episode(env, mean, int(rng.integers(2**31))) for _ in range(100)]
    print(f"the evolved policy's mean return over 100 episodes: {np.mean(returns):.1f}")


if __name__ == "__main__":
    main()
