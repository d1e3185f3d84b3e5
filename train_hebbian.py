"""Evolves Hebbian learning rules, by which a network of random weights learns while it lives."""

from training.programs import train

if __name__ == "__main__":  # worker processes import this file
    train("hebbian", __doc__)
