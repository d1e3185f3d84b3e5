"""Plays episodes with the weights of policy files, and reports and compares their returns."""

import signal

if __name__ == "__main__":  # worker processes import this file
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ctrl-C ends the program quietly while its modules are loaded

    from training.evaluation_options import EvaluateConfig
    from training.programs import evaluate

    evaluate(EvaluateConfig, __doc__)
