"""Microseconds of a policy's forward pass on one thread, compared with torch's batched one: medians.

    python -m benchmarks.policy_forward [--members 64] [--json]

The CNN is the reference's, on 84x84x3. Torch runs it as one grouped convolution over all members. The convolutions of
conv_lstm are on 42x42x1 and without the SELU between them; `conv_lstm_us_per_member` is its whole forward pass. The MLP
maps 17 inputs through 64-64 to 6 outputs, as for HalfCheetah.
"""

import argparse
import json

import numpy as np
import torch
from torch.nn import functional

from benchmarks.alternating_calls import time_calls
from hebbes.contracts.policy import Layout, Policy
from hebbes.policies.cnn import CNN, STRIDES
from hebbes.policies.conv_lstm import NUM_LAYERS, PADDING, STRIDE, ConvLSTM
from hebbes.policies.layers import conv
from hebbes.policies.mlp import MLP


def main() -> None:
    """Prints the measured values."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--members", type=int, default=64, help="members in a batch (default 64)")
    parser.add_argument("--json", action="store_true", help="print one JSON object and nothing else")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    results = measure(arguments.members)
    if arguments.json:
        print(json.dumps(results))
        return
    for name, value in results.items():
        print(f"{name:<28}{value:10.2f}")


def measure(members: int) -> dict[str, float]:
    """Median microseconds of our and torch's forward passes, and our speedups."""
    rng = np.random.default_rng(0)
    cnn, mlp = CNN((84, 84, 3), 3), MLP((17,), 6, hidden_sizes=(64, 64))
    pixels = rng.random((members, *cnn.observation_shape), dtype=np.float32)
    states = rng.standard_normal((members, *mlp.observation_shape))
    cnn_weights, mlp_weights = (_draw_params(policy, members, rng) for policy in (cnn, mlp))
    rewards = np.zeros(members, np.float32)
    torch_pixels, torch_weights = torch.from_numpy(pixels), torch.from_numpy(cnn_weights)
    seconds = time_calls(
        {
            "cnn": lambda: cnn.act(cnn_weights, pixels, rewards, None, {}),
            "torch": lambda: _run_torch_cnn(cnn.layout, torch_weights, torch_pixels),
        }
    )
    # measured separately, because the others leave nothing of it in the caches
    seconds |= time_calls({"mlp": lambda: mlp.act(mlp_weights, states, rewards, None, {})})
    seconds |= _time_conv_lstm(members, rng)
    return {
        "cnn_us_per_member": seconds["cnn"] / members * 1e6,
        "torch_cnn_us_per_member": seconds["torch"] / members * 1e6,
        "cnn_speedup": seconds["torch"] / seconds["cnn"],
        "convolutions_us_per_member": seconds["convolutions"] / members * 1e6,
        "torch_convolutions_us_per_member": seconds["torch_convolutions"] / members * 1e6,
        "convolutions_speedup": seconds["torch_convolutions"] / seconds["convolutions"],
        "conv_lstm_us_per_member": seconds["conv_lstm"] / members * 1e6,
        "mlp_us_per_act": seconds["mlp"] * 1e6,
        "mlp_us_per_member": seconds["mlp"] / members * 1e6,
    }


def _time_conv_lstm(members: int, rng: np.random.Generator) -> dict[str, float]:
    """Median seconds of the convolutions of conv_lstm, of torch's, and of the whole forward pass."""
    policy = ConvLSTM((42, 42, 1), 6)
    weights, rewards = _draw_params(policy, members, rng), np.zeros(members, np.float32)
    pixels = rng.random((members, *policy.observation_shape), dtype=np.float32)
    state = policy.initial_state(weights, [rng] * members, {})
    torch_pixels, torch_weights = torch.from_numpy(pixels), torch.from_numpy(weights)
    return time_calls(
        {
            "convolutions": lambda: _run_convolutions(policy.layout, weights, pixels),
            "torch_convolutions": lambda: _run_torch_convolutions(policy.layout, torch_weights, torch_pixels),
            "conv_lstm": lambda: policy.act(weights, pixels, rewards, state, {}),
        }
    )


def _run_convolutions(layout: Layout, weights: np.ndarray, pixels: np.ndarray) -> np.ndarray:
    maps = pixels.transpose(0, 3, 1, 2)
    for number in range(1, NUM_LAYERS + 1):
        maps = conv(weights, layout, f"conv{number}", maps, stride=STRIDE, padding=PADDING, bias=f"conv{number}_bias")
    return maps


@torch.inference_mode()
def _run_torch_convolutions(layout: Layout, weights: torch.Tensor, pixels: torch.Tensor) -> torch.Tensor:
    members = len(pixels)
    maps = pixels.permute(0, 3, 1, 2).flatten(0, 1).unsqueeze(0)
    for number in range(1, NUM_LAYERS + 1):
        name = f"conv{number}"
        kernels = weights[:, layout.slices[name]].unflatten(1, layout.shapes[name]).flatten(0, 1)
        biases = weights[:, layout.slices[f"{name}_bias"]].flatten()
        maps = functional.conv2d(maps, kernels, biases, stride=STRIDE, padding=PADDING, groups=members)
    return maps


def _draw_params(policy: Policy, members: int, rng: np.random.Generator) -> np.ndarray:
    return np.stack([policy.initial_params(rng) for _ in range(members)])


@torch.inference_mode()
def _run_torch_cnn(layout: Layout, weights: torch.Tensor, pixels: torch.Tensor) -> torch.Tensor:
    members = len(pixels)
    arrays = {name: weights[:, where].unflatten(1, layout.shapes[name]) for name, where in layout.slices.items()}
    maps = pixels.permute(0, 3, 1, 2).flatten(0, 1).unsqueeze(0)
    for number, stride in enumerate(STRIDES, 1):
        kernels = arrays[f"conv{number}"].flatten(0, 1)
        maps = functional.max_pool2d(functional.conv2d(maps, kernels, stride=stride, groups=members), 2).tanh()
    features = maps.reshape(members, -1, 1)
    for name in ("dense1", "dense2"):
        features = torch.bmm(arrays[name], features).tanh()
    return torch.bmm(arrays["dense3"], features).squeeze(2)


if __name__ == "__main__":
    main()
