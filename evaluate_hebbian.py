"""Plays episodes with the learning rules of policy files, and reports and compares their returns."""

import signal
import sys

if __name__ == "__main__":  # worker processes import this file
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ctrl-C ends the program quietly while its modules are loaded

    from training.exit_status import one_line_errors
    from training.hebbian_evaluation import HebbianEvaluateConfig
    from training.programs import evaluate
    from training.reference_import import refuse_reference_flags

    with one_line_errors():
        refuse_reference_flags(sys.argv[1:])
    evaluate(HebbianEvaluateConfig, __doc__)
