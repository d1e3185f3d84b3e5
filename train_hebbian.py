"""Evolves Hebbian learning rules, by which a network of random weights learns while it lives."""

import signal

if __name__ == "__main__":  # worker processes import this file
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ctrl-C ends the program quietly while its modules are loaded

    from training.programs import train

    train("hebbian", __doc__)
