"""Runs strategies without an engine."""

import numpy as np


def sum_weighted_noise(population, utilities, power=1):
    return population.weighted_noise_sum(range(len(population)), utilities, power)


def make_members(population):
    return population.weights(range(len(population)))


def sphere(rows):
    return -np.square(rows.astype(np.float64) - 0.5).sum(axis=1)


def tell_fitness(strategy, fitness, generation=0):
    """Tells the fitness of the perturbed members, and 0 for the mean policy; returns their noise and the metrics.

    The noise is computed from the weights: rows minus the mean, over sigma.
    """
    population = strategy.ask(generation, len(fitness))
    noise = (make_members(population)[:-1].astype(np.float64) - strategy.mean) / np.asarray(population.sigma)
    metrics = strategy.tell(population, np.append(fitness, 0.0), sum_weighted_noise)
    return noise, metrics


def run_generations(strategy, generations, fitness_of=sphere, first=0):
    for generation in range(first, first + generations):
        population = strategy.ask(generation)
        metrics = strategy.tell(population, fitness_of(make_members(population)), sum_weighted_noise)
    return metrics
