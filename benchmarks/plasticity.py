"""Speed of plastic layers against the memory's: the share of its bandwidth that learning and acting once reaches.

    python -m benchmarks.plasticity [--members 64] [--threads 2] [--rule ABCD_lr] [--json]

CarRacing's layers, 648-128-64-3: 91,328 synapses a member, of which every coefficient must be read and every weight
read and written. The bandwidth is that of a plain loop over arrays of the same sizes, which adds up the coefficients
and scales the weights, measured in turns with ours on as many threads, each with members of its own. NumPy's
expressions for the same update and products, on the same threads, are for comparison. Figures are medians.
"""

import argparse
import json
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from math import prod
from statistics import median

import numpy as np
from numba import njit

from policies.plasticity import RULES, LayerRule, Plastic, columns_of, plastic_linear

SHAPES = ((128, 648), (64, 128), (3, 64))
NUM_SYNAPSES = sum(num_outputs * num_inputs for num_outputs, num_inputs in SHAPES)
ROUNDS = 30
WARM_UP = 3


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--members", type=int, default=64, help="members, shared out to the threads (default 64)")
    parser.add_argument("--threads", type=int, default=2, help="threads (default 2)")
    parser.add_argument("--rule", choices=tuple(RULES), default="ABCD_lr", help="learning rule (default ABCD_lr)")
    parser.add_argument("--json", action="store_true", help="print one JSON object and nothing else")
    arguments = parser.parse_args()
    figures = measure(arguments.members, arguments.threads, arguments.rule)
    if arguments.json:
        print(json.dumps(figures))
        return
    for name, figure in figures.items():
        print(f"{name:<28}{figure:10.3f}")


def measure(members: int, threads: int, rule: str) -> dict[str, float]:
    """Milliseconds of one update and product of all members, bandwidths, and ours as a share of the plain loop's."""
    chunks = [_Chunk(members // threads, rule, seed) for seed in range(threads)]
    with ThreadPoolExecutor(threads) as pool:

        def on_all(call: Callable[[_Chunk], None]) -> Callable[[], object]:
            return lambda: list(pool.map(call, chunks))

        seconds = _medians({"ours": on_all(_Chunk.ours), "plain": on_all(_Chunk.plain)})
        numpy_seconds = _medians({"numpy": on_all(_Chunk.numpy)}, rounds=3)["numpy"]
    num_bytes = 4 * (len(RULES[rule]) + 2) * NUM_SYNAPSES * (members // threads * threads)
    return {
        "ours_ms": seconds["ours"] * 1e3,
        "plain_loop_ms": seconds["plain"] * 1e3,
        "numpy_ms": numpy_seconds * 1e3,
        "ours_gb_per_s": num_bytes / seconds["ours"] / 1e9,
        "plain_loop_gb_per_s": num_bytes / seconds["plain"] / 1e9,
        "share_of_bandwidth": seconds["plain"] / seconds["ours"],
    }


class _Chunk:
    """Members of one thread: what the plastic layers work on, and arrays of the same sizes for the plain loop."""

    def __init__(self, members: int, rule: str, seed: int):
        rng = np.random.default_rng(seed)
        self.names, first = RULES[rule], 0
        self.starts: list[int] = []
        self.rules: list[LayerRule] = []
        for shape in SHAPES:
            self.starts.append(first)
            self.rules.append(LayerRule(first, columns_of(RULES[rule])))
            first += len(RULES[rule]) * prod(shape)
        self.params = rng.standard_normal((members, first), dtype=np.float32)
        self.inputs = [rng.random((members, num_inputs), dtype=np.float32) for _, num_inputs in SHAPES]
        self.layers = [
            Plastic(
                weights=rng.standard_normal((members, *shape), dtype=np.float32),
                divisors=np.ones(members, np.float32),
                pre=rng.standard_normal((members, shape[1]), dtype=np.float32),
                post=rng.standard_normal((members, shape[0]), dtype=np.float32),
                due=np.ones(members, np.bool_),
            )
            for shape in SHAPES
        ]
        self.plain_params, self.plain_weights = self.params.copy(), np.ones((members, NUM_SYNAPSES), np.float32)

    def ours(self) -> None:
        """One update, normalisation and product of every layer."""
        for rule, layer, inputs in zip(self.rules, self.layers, self.inputs, strict=True):
            plastic_linear(self.params, rule, layer, "max_abs", inputs)

    def plain(self) -> None:
        """Reads as much, and reads and writes as much."""
        _plain_loop(self.plain_params, self.plain_weights)

    def numpy(self) -> None:
        """The same with NumPy."""
        for start, layer, inputs in zip(self.starts, self.layers, self.inputs, strict=True):
            members, *shape = layer.weights.shape
            x, y = layer.pre[:, None, :], layer.post[:, :, None]
            count = len(self.names) * prod(shape)
            sets = self.params[:, start : start + count].reshape(members, shape[0], -1, shape[1])
            term = {name: sets[:, :, place] for place, name in enumerate(self.names)}
            change = term["A"] * x * y
            for name, factor in (("B", x), ("C", y), ("D", np.float32(1))):
                change += term[name] * factor if name in term else 0
            weights = layer.weights + change * term.get("eta", np.float32(1)) + term.get("D_out", np.float32(0))
            weights /= np.abs(weights).max(axis=(1, 2), keepdims=True)
            np.matmul(weights, inputs[:, :, None])


@njit(nogil=True, fastmath=True)
def _plain_loop(params: np.ndarray, weights: np.ndarray) -> None:
    for member in range(len(weights)):
        row, source, total = weights[member], params[member], np.float32(0)
        for i in range(len(source)):
            total += source[i]
        for i in range(len(row)):
            row[i] = row[i] * np.float32(0.5) + total


def _medians(calls: Mapping[str, Callable[[], object]], rounds: int = ROUNDS) -> dict[str, float]:
    """Median seconds of each call, the calls taken in turns so that a busy moment hits them all."""
    seconds: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(WARM_UP + rounds):
        for name, call in calls.items():
            start = time.perf_counter()
            call()
            seconds[name].append(time.perf_counter() - start)
    return {name: median(values[WARM_UP:]) for name, values in seconds.items()}


if __name__ == "__main__":
    main()
