"""Prints a digest of every strategy's state after three generations of training."""

import hashlib
import json
import sys
from pathlib import Path

from hebbes.files.checkpoint import load_newest_checkpoint
from hebbes.reporting import learning_curve
from tests.short_runs import write_one_pixel
from tests.strategies.every_strategy import SETTINGS, STRATEGY_NAMES
from tests.training.scripted_runs import make_scripted_config, train

DENSE = {"cma_es", "xnes"}
"""Strategies with a full covariance. Their matrices are large even with few parameters."""


def compute_digest(folder: Path, name: str) -> str:
    changes = {"population_size": 8} if "population_size" in SETTINGS[name] or name in DENSE else {}
    changes |= {"openai_es": {"optimizer": "clip_up"}, "ga": {"parents": 4}}.get(name, {})
    settings = {**SETTINGS[name], **changes}
    sizes = (16, 16) if name in DENSE else (200, 200)  # 320 and 40,800 parameters
    network = {"policy": "mlp", "hidden_sizes": sizes}
    config = make_scripted_config(folder, run_name=name, strategy=name, generations=3, **network, **settings)
    checkpoint, _ = load_newest_checkpoint(train(config) / "checkpoint")
    assert checkpoint.progress.units == 3
    return hashlib.sha256(b"".join(array.tobytes() for _, array in sorted(checkpoint.state.arrays.items()))).hexdigest()


if __name__ == "__main__":
    learning_curve.write_figure = write_one_pixel
    digests = {name: compute_digest(Path(sys.argv[1]), name) for name in STRATEGY_NAMES}
    print("\n" + json.dumps(digests))
