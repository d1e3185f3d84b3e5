"""Plays episodes with the learning rules of policy files, and reports and compares their returns."""

import sys

from training.startup import begin

if __name__ == "__main__":  # worker processes import this file
    begin()

    from training.exit_status import one_line_errors
    from training.hebbian_evaluation import HebbianEvaluateConfig
    from training.programs import evaluate
    from training.reference_import import refuse_reference_flags

    with one_line_errors():
        refuse_reference_flags(sys.argv[1:])
    evaluate(HebbianEvaluateConfig, __doc__)
