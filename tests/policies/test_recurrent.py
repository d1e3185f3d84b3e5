"""Recurrent networks against PyTorch's cells, and the errors they raise."""

import numpy as np
import pytest
import torch
from torch import nn

from hebbes.policies.conv_lstm import ConvLSTM
from hebbes.policies.gru import GRU
from hebbes.policies.lstm import LSTM
from hebbes.policies.small import Small

MEMBERS, STEPS = 3, 5


class TorchConvLSTM(nn.Module):
    """The large network of pytorch-es, in the order in which its parameters are declared."""

    def __init__(self):
        super().__init__()
        self.convolutions = nn.ModuleList([nn.Conv2d(c, 32, 3, stride=2, padding=1) for c in (1, 32, 32, 32)])
        self.lstm = nn.LSTMCell(288, 256)
        self.linear = nn.Linear(256, 6)

    def forward(self, image, state):
        for convolution in self.convolutions:
            image = nn.functional.selu(convolution(image))
        hidden, cell = self.lstm(image.flatten(1), state)
        return self.linear(hidden), (hidden, cell)


class TorchCell(nn.Module):
    """A hidden layer, a cell and a head."""

    def __init__(self, kind):
        super().__init__()
        self.dense, self.cell, self.head = nn.Linear(4, 7), kind(7, 5), nn.Linear(5, 2)

    def forward(self, observation, state):
        state = self.cell(torch.relu(self.dense(observation)), state)
        return self.head(state[0] if isinstance(state, tuple) else state), state


CASES = [
    (ConvLSTM((42, 42, 1), 6), TorchConvLSTM),
    (LSTM((4,), 2, hidden_sizes=(7,), recurrent_size=5, activation="relu"), lambda: TorchCell(nn.LSTMCell)),
    (GRU((4,), 2, hidden_sizes=(7,), recurrent_size=5, activation="relu"), lambda: TorchCell(nn.GRUCell)),
]


@torch.no_grad()
def _play_with_torch(module, row, observations):
    """Outputs of an episode with these weights, in float64."""
    nn.utils.vector_to_parameters(torch.from_numpy(row), module.parameters())
    module, state, outputs = module.double(), None, []
    for observation in observations:
        image = np.moveaxis(observation, -1, 0) if observation.ndim == 3 else observation
        output, state = module(torch.from_numpy(image[np.newaxis].astype(np.float64)), state)
        outputs.append(output[0].numpy())
    return np.stack(outputs)


@pytest.mark.parametrize(("policy", "module"), CASES, ids=["conv_lstm", "lstm", "gru"])
def test_an_episode_of_each_member_equals_torch(policy, module):
    rng = np.random.default_rng(0)
    weights = rng.normal(0, 0.1, (MEMBERS, policy.layout.num_params)).astype(np.float32)
    observations = rng.standard_normal((STEPS, MEMBERS, *policy.observation_shape), dtype=np.float32)
    state = policy.initial_state(weights, [rng] * MEMBERS, {})
    found = [policy.act(weights, seen, np.zeros(MEMBERS, np.float32), state, {}) for seen in observations]
    for member in range(MEMBERS):
        expected = _play_with_torch(module(), weights[member], observations[:, member])
        np.testing.assert_allclose(np.stack(found)[:, member], expected, atol=3e-6)
        assert np.abs(np.diff(expected, axis=0)).max() > 1e-3


def test_parameter_counts_of_pytorch_es():
    assert ConvLSTM((42, 42, 1), 6).layout.num_params == 588_710
    assert Small((4,), 2).layout.num_params == 4 * 64 + 64 + 64 * 64 + 64 + 64 * 2 + 2


def test_small_equals_torchs_selu_network():
    policy, rng = Small((4,), 2), np.random.default_rng(0)
    row = rng.normal(0, 0.3, policy.layout.num_params).astype(np.float32)
    module = nn.Sequential(nn.Linear(4, 64), nn.SELU(), nn.Linear(64, 64), nn.SELU(), nn.Linear(64, 2))
    nn.utils.vector_to_parameters(torch.from_numpy(row), module.parameters())
    observation = rng.standard_normal((1, 4), dtype=np.float32)
    found = policy.act(row[np.newaxis], observation, np.zeros(1, np.float32), None, {})
    expected = module.double()(torch.from_numpy(observation.astype(np.float64)))
    np.testing.assert_allclose(found, expected.detach().numpy(), atol=1e-5)


def test_the_search_starts_with_biases_of_zero():
    policy = ConvLSTM((42, 42, 1), 6)
    row = policy.initial_params(np.random.default_rng(0))
    num_biases = 4 * 32 + 2 * 4 * 256 + 6
    assert np.count_nonzero(row) == 588_710 - num_biases
    recurrent = policy.layout.view(row[np.newaxis], "cell_recurrent")
    assert 0.99 * np.sqrt(6 / (1024 + 256)) < recurrent.max() <= np.sqrt(6 / (1024 + 256))


def test_the_state_is_zero_when_an_episode_begins():
    policy, rng = LSTM((4,), 2, hidden_sizes=()), np.random.default_rng(0)
    state = policy.initial_state(np.zeros((2, policy.layout.num_params), np.float32), [rng, rng], {})
    assert {name: (array.shape, array.any()) for name, array in state.items()} == {
        "hidden": ((2, 64), False),
        "cell": ((2, 64), False),
    }


def test_conv_lstm_takes_images():
    with pytest.raises(ValueError, match=r"observation_shape: got \(4,\), conv_lstm takes images .* 42 x 42 x 1 of --"):
        ConvLSTM((4,), 2)
