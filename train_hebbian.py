"""Evolves Hebbian learning rules, by which a network of random weights learns while it lives."""

from training.startup import begin

if __name__ == "__main__":  # worker processes import this file
    begin()

    from training.programs import train

    train("hebbian", __doc__)
