"""A program that prints a digest of every strategy's state after three generations of training."""

import hashlib
import json
import sys
from pathlib import Path

from hebbes.files.checkpoint import newest_checkpoint
from hebbes.registry.lookup import lookup
from tests.strategies.every_strategy import FOUND, SETTINGS
from tests.training.scripted_runs import scripted_config, train

DENSE = {"cma_es", "xnes"}
"""Strategies with a full covariance, which work in matrices long before their vectors are long."""


def digest(folder: Path, name: str) -> str:
    changes = {"popsize": 8} if "popsize" in SETTINGS[name] or name in DENSE else {}
    changes |= {"openai_es": {"optimizer": "clip_up"}, "ga": {"parents": 4}}.get(name, {})
    settings = lookup("strategy", name).Settings(**{**SETTINGS[name], **changes})
    sizes = (16, 16) if name in DENSE else (200, 200)  # 320 and 40,800 parameters
    changes = {"strategy": name, "settings": settings, "policy": "mlp", "hidden_sizes": sizes, "generations": 3}
    checkpoint, _ = newest_checkpoint(train(scripted_config(folder, run_name=name, **changes)) / "checkpoint")
    assert checkpoint.progress.generation == 3
    return hashlib.sha256(b"".join(array.tobytes() for _, array in sorted(checkpoint.strategy.items()))).hexdigest()


if __name__ == "__main__":
    digests = {name: digest(Path(sys.argv[1]), name) for name in FOUND}
    print("\n" + json.dumps(digests))
