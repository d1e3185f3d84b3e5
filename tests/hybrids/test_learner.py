"""Every setting of the gradient steps reaches them: a Learner against the same networks in PyTorch, with autograd."""

from itertools import pairwise

import numpy as np
import pytest
import torch

from hebbes.contracts.engine import Transitions
from hebbes.hybrids.core.learner import Learner
from hebbes.hybrids.core.settings import GradientSettings
from hebbes.policies.mlp import MLP

OBSERVATION, ACTION, BATCH = 3, 2, 32
BOUNDS = np.full(ACTION, -2, np.float32), np.full(ACTION, 1, np.float32)
SETTINGS = GradientSettings(
    batch_size=BATCH,
    learning_rate=0.003,
    critic_hidden_sizes=(7, 6),
    critic_activation="leaky_relu",
    discount=0.7,
    target_rate=0.3,
    target_noise=0.6,
    target_noise_clip=0.9,
)


class Peer:
    """TD3 as the paper writes it (Fujimoto et al. 2018, algorithm 1)."""

    def __init__(self, actor_row, critic_rows):
        self.actor, self.target = (make_network(OBSERVATION, (5,), ACTION, torch.nn.Tanh, actor_row) for _ in range(2))
        self.critics, self.targets = (
            [make_network(OBSERVATION + ACTION, (7, 6), 1, torch.nn.LeakyReLU, row) for row in critic_rows]
            for _ in range(2)
        )
        critics = [each for critic in self.critics for each in critic.parameters()]
        self.critic_optimizer = torch.optim.Adam(critics, 0.003)
        self.actor_optimizer = torch.optim.Adam(self.actor.parameters(), 0.003)

    def act(self, actor, observations):
        return -0.5 + 1.5 * torch.tanh(actor(observations))

    def train_critics(self, batch, noise):
        observations, actions, rewards, continues, following = batch
        with torch.no_grad():
            next_actions = (self.act(self.target, following) + 1.5 * noise).clamp(-2, 1)
            inputs = torch.cat((following, next_actions), 1)
            estimates = torch.minimum(*(target(inputs).squeeze(1) for target in self.targets))
            wanted = rewards + 0.7 * continues * estimates
        inputs = torch.cat((observations, actions), 1)
        loss = sum((critic(inputs).squeeze(1) - wanted).square().mean() for critic in self.critics)
        take_step(self.critic_optimizer, loss)
        return loss.item()

    def train_actor(self, observations):
        value = self.critics[0](torch.cat((observations, self.act(self.actor, observations)), 1)).mean()
        take_step(self.actor_optimizer, -value)
        return value.item()

    def move_targets(self):
        pairs = (self.target, self.actor), *zip(self.targets, self.critics, strict=True)
        for target, network in pairs:
            for old, new in zip(target.parameters(), network.parameters(), strict=True):
                old.data = 0.7 * old.data + 0.3 * new.data


def take_step(optimizer, loss):
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


def make_network(inputs, hidden, outputs, activation, row):
    sizes, layers = (inputs, *hidden, outputs), []
    for before, after in pairwise(sizes):
        layers += [torch.nn.Linear(before, after), activation()]
    network = torch.nn.Sequential(*layers[:-1])
    torch.nn.utils.vector_to_parameters(torch.tensor(row), network.parameters())
    return network


def flatten(network):
    return torch.nn.utils.parameters_to_vector(network.parameters()).detach().numpy()


def make_transitions(rng, count):
    observations, following = (rng.normal(size=(count, OBSERVATION)).astype(np.float32) for _ in range(2))
    actions = rng.uniform(-1, 1, (count, ACTION)).astype(np.float32)
    return Transitions(observations, actions, rng.normal(size=count), rng.random(count) < 0.2, following)


def test_a_learner_takes_the_steps_of_td3_with_its_settings():
    data = np.random.default_rng(0)
    policy = MLP((OBSERVATION,), ACTION, hidden_sizes=(5,), activation="tanh", bias=True)
    learner = Learner(SETTINGS, policy, BOUNDS, 0)
    learner.add(make_transitions(data, 100))
    row = policy.initial_params(data).astype(np.float32)[np.newaxis]
    actors, target, peer = learner.make_actors(row), learner.actor.copy(row), Peer(row[0], learner.critics.copy_rows())
    rng, same = np.random.default_rng(3), np.random.default_rng(3)

    def draw():
        """The batch that the learner draws next, from a copy of its generator."""
        batch = learner.replay.draw(same, BATCH)
        names = ("observations", "actions", "rewards", "continues", "next_observations")
        return [getattr(batch, name).clone() for name in names]

    losses, values = [], []
    for step in range(1, 13):
        batch = draw()
        noise = np.clip(0.6 * same.standard_normal((BATCH, ACTION), np.float32), -0.9, 0.9)
        with learner.use_threads():
            learner.train_critics(target, rng)
        losses.append(peer.train_critics(batch, torch.from_numpy(noise)))
        if step % 2 == 0:
            observations, *_ = draw()
            with learner.use_threads():
                learner.train_actors(actors, rng)
                target.rows.lerp_(actors.trained.rows, SETTINGS.target_rate)
                learner.critics.move_targets()
            values.append(peer.train_actor(observations))
            peer.move_targets()
    assert rng.random() == same.random()
    for found, network in (
        (row[0], peer.actor),
        (target.rows[0].numpy(), peer.target),
        *zip(learner.critics.copy_rows(), peer.critics, strict=True),
        *zip(learner.critics.targets.numpy(), peer.targets, strict=True),
    ):
        np.testing.assert_allclose(found, flatten(network), rtol=0, atol=1e-5)
    metrics = learner.take_metrics()
    assert metrics["critic_loss"] == pytest.approx(np.mean(losses), rel=1e-4)
    assert metrics["q_mean"] == pytest.approx(np.mean(values), rel=1e-3, abs=1e-5)
