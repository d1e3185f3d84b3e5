"""Speed of plastic layers: the share of the memory bandwidth that one update and forward pass reaches.

    python -m benchmarks.plasticity [--members 64] [--threads 2] [--rule ABCD_lr] [--eligibility] ...

The layers are those for CarRacing, 648-128-64-3: 91,328 synapses per member. All coefficients of a member must be read.
Its weights, and its traces if any, must be read and written. The bandwidth is that of a plain loop over arrays of the
same sizes, which sums the coefficients and scales weights and traces. Both are measured alternately, on the same number
of threads, each with members of its own. Tables of shared rules, which all members read, are not counted. All values
are medians.
"""

import argparse
import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields
from math import prod

import numpy as np

from benchmarks.alternating_calls import time_calls
from hebbes.compilation import njit
from hebbes.policies.hebbian import Hebbian

FEATURES, ACTIONS, HIDDEN_SIZES = 648, 3, (128, 64)
AXES = {"rule": "hebb_rule", "sharing": "sharing", "normalization": "normalization", "modulation": "modulation"}
"""Flag -> the option of `Hebbian` that it sets."""


def main() -> None:
    """Prints the measured values."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--members", type=int, default=64, help="members, divided among the threads (default 64)")
    parser.add_argument("--threads", type=int, default=2, help="threads (default 2)")
    options = {field.name: field for field in fields(Hebbian)}
    for flag, name in AXES.items():
        described, choices = options[name].metadata["help"], options[name].metadata["choices"]
        default = options[name].default
        parser.add_argument(f"--{flag}", choices=choices, default=default, help=f"{described} (default {default})")
    parser.add_argument("--eligibility", action="store_true", help=options["eligibility"].metadata["help"])
    parser.add_argument("--json", action="store_true", help="print one JSON object and nothing else")
    arguments = parser.parse_args()
    chosen = {name: getattr(arguments, flag) for flag, name in AXES.items()}
    try:
        policy = Hebbian((FEATURES,), ACTIONS, HIDDEN_SIZES, eligibility=arguments.eligibility, **chosen)
        policy.check_buffers({})
    except ValueError as error:
        parser.error(str(error))
    results = measure(policy, arguments.members, arguments.threads)
    if arguments.json:
        print(json.dumps(results))
        return
    for name, value in results.items():
        print(f"{name:<28}{value:10.3f}")


def measure(policy: Hebbian, members: int, threads: int) -> dict[str, float]:
    """Times of one update and forward pass of all members, bandwidths, and our share of the plain loop's bandwidth."""
    chunks = [_Chunk(policy, members // threads, seed) for seed in range(threads)]
    with ThreadPoolExecutor(threads) as pool:

        def run_on_all(call: Callable[[_Chunk], None]) -> Callable[[], object]:
            return lambda: list(pool.map(call, chunks))

        seconds = time_calls({"ours": run_on_all(_Chunk.run_ours), "plain": run_on_all(_Chunk.run_plain_loop)})
    num_bytes = threads * chunks[0].num_bytes
    return {
        "ours_ms": seconds["ours"] * 1e3,
        "plain_loop_ms": seconds["plain"] * 1e3,
        "ours_ns_per_synapse": seconds["ours"] * 1e9 / (members // threads * _count_synapses(policy)),
        "ours_gb_per_s": num_bytes / seconds["ours"] / 1e9,
        "plain_loop_gb_per_s": num_bytes / seconds["plain"] / 1e9,
        "share_of_bandwidth": seconds["plain"] / seconds["ours"],
    }


def _count_synapses(policy: Hebbian) -> int:
    return sum(map(prod, policy.plastic_shapes.values()))


class _Chunk:
    """Members of one thread: the arrays of the policy, and arrays of the same sizes for the plain loop."""

    def __init__(self, policy: Hebbian, members: int, seed: int):
        rng = np.random.default_rng(seed)
        self.policy = policy
        self.params = rng.standard_normal((members, policy.layout.num_params), dtype=np.float32)
        self.observations = rng.random((members, FEATURES), dtype=np.float32)
        self.rewards = np.ones(members, np.float32)
        self.state = policy.initial_state(self.params, rng.spawn(members), {})
        self.plain_params = self.params.copy()
        self.plain_weights = np.ones((members, (1 + policy.eligibility) * _count_synapses(policy)), np.float32)

    @property
    def num_bytes(self) -> int:
        """Bytes that must at least be read or written."""
        return self.plain_params.nbytes + 2 * self.plain_weights.nbytes

    def run_ours(self) -> None:
        """One update, normalization and forward pass of every layer."""
        self.policy.act(self.params, self.observations, self.rewards, self.state, {})

    def run_plain_loop(self) -> None:
        """Reads, and reads and writes, the same numbers of bytes."""
        _plain_loop(self.plain_params, self.plain_weights)


@njit(nogil=True, fastmath=True)
def _plain_loop(params: np.ndarray, weights: np.ndarray) -> None:
    for member in range(len(weights)):
        row, source, total = weights[member], params[member], np.float32(0)
        for i in range(len(source)):
            total += source[i]
        for i in range(len(row)):
            row[i] = row[i] * np.float32(0.5) + total


if __name__ == "__main__":
    main()
