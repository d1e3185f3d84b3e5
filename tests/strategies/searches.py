"""Runs strategies without an engine."""

import numpy as np

from hebbes.contracts.strategy import Results
from hebbes.policies.mean_squares import compute_mean_squares


def make_members(population):
    return population.weights(range(len(population)))


def make_results(population, fitness):
    """The results of a population whose members have this fitness."""
    members = range(len(population))

    def sum_noise(utilities, powers):
        return population.weighted_noise_sums(members, utilities, powers)

    return Results(fitness, compute_mean_squares(population.weights(members)), sum_noise)


def sphere(rows):
    return -np.square(rows.astype(np.float64) - 0.5).sum(axis=1)


def tell_fitness(strategy, fitness, generation=0):
    """Tells the fitness of the perturbed members, and 0 for the mean policy; returns their noise and the metrics.

    The noise is computed from the weights: rows minus the mean, over sigma.
    """
    population = strategy.ask(generation, len(fitness))
    noise = (make_members(population)[:-1].astype(np.float64) - strategy.mean) / np.asarray(population.sigma)
    metrics = strategy.tell(population, make_results(population, np.append(fitness, 0.0)))
    return noise, metrics


def run_generations(strategy, generations, fitness_of=sphere, first=0):
    for generation in range(first, first + generations):
        population = strategy.ask(generation)
        metrics = strategy.tell(population, make_results(population, fitness_of(make_members(population))))
    return metrics
