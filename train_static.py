"""Evolves the static weights of a policy on any Gymnasium environment."""

import signal

if __name__ == "__main__":  # worker processes import this file
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ctrl-C ends the program quietly while its modules are loaded

    from training.programs import train

    train("static", __doc__)
