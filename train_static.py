"""Evolves the static weights of a policy on any Gymnasium environment."""

from training.programs import train

if __name__ == "__main__":  # worker processes import this file
    train("static", __doc__)
