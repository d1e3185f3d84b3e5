"""Plays episodes with the learning rules of policy files, and reports and compares their returns."""

from training.hebbian_evaluation import HebbianEvaluateConfig
from training.programs import evaluate

if __name__ == "__main__":  # worker processes import this file
    evaluate(HebbianEvaluateConfig, __doc__)
