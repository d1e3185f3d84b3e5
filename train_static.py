"""Evolves the static weights of a policy on any Gymnasium environment."""

from training.startup import begin

if __name__ == "__main__":  # worker processes import this file
    begin()

    from training.programs import train

    train("static", __doc__)
