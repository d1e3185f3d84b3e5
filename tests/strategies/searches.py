"""Drives strategies without an engine."""

import numpy as np


def combine(population, utilities, power=1):
    return population.combine(range(len(population)), utilities, power)


def members(population):
    return population.weights(range(len(population)))


def sphere(rows):
    return -np.square(rows.astype(np.float64) - 0.5).sum(axis=1)


def tell(strategy, fitness, generation=0):
    """Tells the fitness of the perturbed members, the unperturbed one's being 0; returns their noise and the figures.

    The noise is worked out from the weights: rows less the mean, over sigma.
    """
    population = strategy.ask(generation, len(fitness))
    noise = (members(population)[:-1].astype(np.float64) - strategy.mean) / np.asarray(population.sigma)
    figures = strategy.tell(population, np.append(fitness, 0.0), combine)
    return noise, figures


def search(strategy, generations, fitness_of=sphere, first=0):
    for generation in range(first, first + generations):
        population = strategy.ask(generation)
        figures = strategy.tell(population, fitness_of(members(population)), combine)
    return figures
