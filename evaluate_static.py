"""Plays episodes with the weights of policy files, and reports and compares their returns."""

from training.startup import begin

if __name__ == "__main__":  # worker processes import this file
    begin()

    from training.evaluation_options import EvaluateConfig
    from training.programs import evaluate

    evaluate(EvaluateConfig, __doc__)
