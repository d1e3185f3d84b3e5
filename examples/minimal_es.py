"""Evolution strategies in one sitting: a linear policy learns to balance CartPole without a gradient.

OpenAI-ES after Salimans et al. 2017, "Evolution Strategies as a Scalable Alternative to Reinforcement Learning"
(arXiv 1703.03864): antithetic noise, centred ranks, and one step along the noise weighted by them.
"""

import argparse

import gymnasium as gym
import numpy as np

POPULATION = 20  # members a generation, in pairs of opposite noise


def episode_return(env: gym.Env, weights: np.ndarray, seed: int) -> float:
    """Sum of the rewards of one episode, acting by the larger output of a linear policy."""
    observation, _ = env.reset(seed=seed)
    policy = weights.reshape(-1, len(observation))
    total, done = 0.0, False
    while not done:
        observation, reward, terminated, truncated, _ = env.step(int(np.argmax(policy @ observation)))
        total, done = total + float(reward), terminated or truncated
    return total


def update(mean: np.ndarray, noise: np.ndarray, fitness: np.ndarray, learning_rate: float, sigma: float) -> np.ndarray:
    """The mean after a step towards the fitter of the members `mean + sigma * noise`, one row of noise a member."""
    wins = fitness[:, None] > fitness
    ranks = (wins.sum(axis=1) - wins.sum(axis=0)) / (2 * (len(fitness) - 1))  # in [-0.5, 0.5], ties share their rank
    return mean + learning_rate / (len(fitness) * sigma) * ranks @ noise


def main() -> None:
    """Evolves, printing a line a generation, then tests the mean on 100 fresh episodes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--generations", type=int, default=50, help="steps of evolution (default 50)")
    parser.add_argument("--seed", type=int, default=0, help="of the noise and the start states (default 0)")
    arguments = parser.parse_args()
    env, rng = gym.make("CartPole-v1"), np.random.default_rng(arguments.seed)
    mean, learning_rate, sigma = np.zeros(4 * 2), 0.2, 0.1
    for generation in range(arguments.generations):
        half = rng.standard_normal((POPULATION // 2, len(mean)))
        noise, start = np.concatenate([half, -half]), int(rng.integers(2**31))  # all members meet one start state
        fitness = np.array([episode_return(env, mean + sigma * row, start) for row in noise])
        mean = update(mean, noise, fitness, learning_rate, sigma)
        learning_rate, sigma = max(learning_rate * 0.995, 0.001), max(sigma * 0.999, 0.01)
        print(f"generation {generation}  mean {fitness.mean():.1f}  best {fitness.max():.0f}")
    returns = [episode_return(env, mean, int(rng.integers(2**31))) for _ in range(100)]
    print(f"the evolved policy's mean return over 100 episodes: {np.mean(returns):.1f}")


if __name__ == "__main__":
    main()
