"""The gradient steps of TD3, against Stable-Baselines3 and by hand."""

import warnings
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from hebbes.hybrids.core.actor_critic import (
    ActionRange,
    ActorNetwork,
    Actors,
    Batch,
    Critics,
    Trained,
    draw_target_noise,
)
from hebbes.hybrids.core.networks import Network

OBSERVATION, ACTION, HIDDEN, BATCH = 5, 2, (32, 24), 64


@pytest.fixture(autouse=True)
def without_autograd():
    with torch.no_grad():
        yield


def make_batch(rng):
    def draw(*shape):
        return torch.from_numpy(rng.normal(size=shape).astype(np.float32))

    actions = torch.from_numpy(rng.uniform(-1, 1, (BATCH, ACTION)).astype(np.float32))
    continues = torch.from_numpy((rng.random(BATCH) > 0.1).astype(np.float32))
    return Batch(draw(BATCH, OBSERVATION), actions, draw(BATCH), continues, draw(BATCH, OBSERVATION))


def make_td3(actor_row, critic_rows, *, hidden="relu", low=-1.0, high=1.0):
    actor_network = Network((OBSERVATION, *HIDDEN, ACTION), hidden, "tanh")
    critic_network = Network((OBSERVATION + ACTION, *HIDDEN, 1), "relu", "linear")
    bounds = ActionRange(torch.full((ACTION,), low), torch.full((ACTION,), high))
    shape = ActorNetwork(actor_network, bounds)
    critics = Critics(critic_network, critic_rows, learning_rate=1e-3, discount=0.99, target_rate=0.005)
    return shape, Actors(shape, actor_row.numpy(), 1e-3), critics


def flatten(parameters):
    return torch.nn.utils.parameters_to_vector(parameters).detach().clone()


def make_peer():
    gymnasium = pytest.importorskip("gymnasium")
    peer = pytest.importorskip("stable_baselines3", reason="tests/hybrids/requirements.txt is not installed")
    logger = pytest.importorskip("stable_baselines3.common.logger")

    class Env(gymnasium.Env):
        observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (OBSERVATION,), np.float32)
        action_space = gymnasium.spaces.Box(-1, 1, (ACTION,), np.float32)

    model = peer.TD3("MlpPolicy", Env(), batch_size=BATCH, device="cpu", policy_kwargs={"net_arch": list(HIDDEN)})
    model.set_logger(logger.configure(None, []))
    return model


def test_a_hundred_updates_equal_those_of_stable_baselines():
    with torch.enable_grad():
        model = make_peer()
    actor_rows = flatten(model.actor.parameters()).unsqueeze(0)
    critic_rows = torch.stack([flatten(net.parameters()) for net in model.critic.q_networks])
    shape, actors, critics = make_td3(actor_rows, critic_rows)
    target = shape.network.make_parameters(actor_rows.clone())
    rng = np.random.default_rng(0)
    for update in range(1, 101):
        batch = make_batch(rng)
        given = SimpleNamespace(
            observations=batch.observations,
            actions=batch.actions,
            rewards=batch.rewards[:, None],
            dones=1 - batch.continues[:, None],
            next_observations=batch.next_observations,
            discounts=None,
        )
        model.replay_buffer.sample = lambda *_, given=given, **__: given
        torch.manual_seed(update)
        with torch.enable_grad():
            model.train(1, BATCH)
        torch.manual_seed(update)
        noise = torch.empty(BATCH, ACTION).normal_(0, 0.2).clamp_(-0.5, 0.5)
        critics.train(batch, shape.act_noisily(target, batch.next_observations, noise))
        if update % 2 == 0:
            actors.train(batch.observations.unsqueeze(0), critics)
            critics.move_targets()
            target.rows.lerp_(actor_rows, 0.005)
    peers = {
        "actor": (actor_rows[0], model.actor),
        "target actor": (target.rows[0], model.actor_target),
        **{f"critic {k}": (critic_rows[k], model.critic.q_networks[k]) for k in (0, 1)},
        **{f"target critic {k}": (critics.targets[k], model.critic_target.q_networks[k]) for k in (0, 1)},
    }
    for name, (row, module) in peers.items():
        torch.testing.assert_close(row, flatten(module.parameters()), rtol=0, atol=1e-5, msg=name)


def test_targets_by_hand():
    """With all weights zero but the last biases, Q is a constant: y = r + gamma (1 - d) min(Q1', Q2')."""
    _, _, critics = make_td3(torch.zeros(1, make_sizes()[0]), torch.zeros(2, make_sizes()[1]))
    critics.targets[:, -1] = torch.tensor([3.0, 2.0])
    batch = make_batch(np.random.default_rng(1))
    errors = critics.train(batch, batch.actions)
    expected = -(batch.rewards + 0.99 * batch.continues * 2)
    torch.testing.assert_close(errors, expected.expand(2, -1))
    moved = critics.trained.rows[:, -1]  # Adam's first step is the learning rate against the sign
    assert moved.tolist() == pytest.approx([-1e-3 * np.sign(errors[k].mean().item()) for k in (0, 1)], rel=1e-4)


def make_sizes():
    actor = Network((OBSERVATION, *HIDDEN, ACTION), "tanh", "tanh").num_params
    return actor, Network((OBSERVATION + ACTION, *HIDDEN, 1), "relu", "linear").num_params


def test_actions_and_noise_are_in_the_range_of_the_environment():
    actor, critic = make_sizes()
    generator = torch.Generator().manual_seed(0)
    shape, _, _ = make_td3(torch.randn(1, actor, generator=generator), torch.zeros(2, critic), low=0.0, high=4.0)
    parameters = shape.network.make_parameters(torch.zeros(1, actor))
    observations = torch.zeros(3, OBSERVATION)
    noise = torch.tensor([[0.25, -0.25], [0.5, -0.5], [9.0, -9.0]])
    assert shape.act_noisily(parameters, observations, noise).tolist() == [[2.5, 1.5], [3.0, 1.0], [4.0, 0.0]]


def test_several_actors_are_trained_as_each_alone():
    actor, critic = make_sizes()
    generator = torch.Generator().manual_seed(0)
    rows, critic_rows = (0.3 * torch.randn(n, size, generator=generator) for n, size in ((3, actor), (2, critic)))
    observations = torch.randn(3, BATCH, OBSERVATION, generator=generator)
    together, alone = rows.clone(), rows.clone()
    _, actors, critics = make_td3(together, critic_rows.clone(), hidden="tanh")
    before = critics.get_state()
    for _ in range(5):
        actors.train(observations, critics)
    for k in range(3):
        _, actors, critics = make_td3(alone[k : k + 1], critic_rows.clone(), hidden="tanh")
        for _ in range(5):
            actors.train(observations[k : k + 1], critics)
    assert not torch.equal(together, rows)
    torch.testing.assert_close(together, alone, rtol=1e-5, atol=1e-6)
    after = critics.get_state()
    assert all(np.array_equal(before[name], after[name]) for name in before)  # critics are frozen


def test_a_step_of_an_actor_raises_its_estimate():
    actor, critic = make_sizes()
    generator = torch.Generator().manual_seed(0)
    row, critic_rows = (0.3 * torch.randn(n, size, generator=generator) for n, size in ((1, actor), (2, critic)))
    _, actors, critics = make_td3(row, critic_rows, low=-2.0, high=1.0)
    observations = torch.randn(1, BATCH, OBSERVATION, generator=generator)
    estimates = [float(actors.train(observations, critics).mean()) for _ in range(30)]
    assert estimates[-1] > estimates[0]


def test_the_state_continues_with_the_same_bits():
    actor, critic = make_sizes()
    generator = torch.Generator().manual_seed(0)
    critic_rows = torch.randn(2, critic, generator=generator)
    _, _, critics = make_td3(torch.zeros(1, actor), critic_rows)
    batches = [make_batch(np.random.default_rng(k)) for k in range(6)]
    for batch in batches[:3]:
        critics.train(batch, batch.actions)
        critics.move_targets()
    _, _, resumed = make_td3(torch.zeros(1, actor), torch.zeros(2, critic))
    resumed.set_state(critics.get_state())
    for batch in batches[3:]:
        for each in (critics, resumed):
            each.train(batch, batch.actions)
            each.move_targets()
    found, expected = resumed.get_state(), critics.get_state()
    assert all(np.array_equal(found[name], expected[name]) for name in expected)


def test_the_state_may_lie_in_arrays_that_cannot_be_written_to():
    """Those of Ray cannot."""
    actor, critic = make_sizes()
    _, _, critics = make_td3(torch.zeros(1, actor), torch.zeros(2, critic))
    state = critics.get_state()
    for array in state.values():
        array.flags.writeable = False
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        critics.set_state(state)


def test_target_noise_is_clipped():
    noise = np.empty((1000, 2), np.float32)
    draw_target_noise(np.random.default_rng(0), 0.2, 0.5, noise)
    assert np.abs(noise).max() == 0.5
    assert noise.std() == pytest.approx(0.2, rel=0.1)


def test_steps_are_counted_beyond_what_float32_can():
    trained = Trained(Network((3, 4, 1), "relu", "linear"), torch.zeros(1, 21), 1e-3)
    trained.set_state({**trained.get_state(), "adam_steps": np.array([2**24])})
    trained.descend(torch.zeros(1, 2, 3), lambda part, outputs: torch.zeros_like(outputs))
    assert trained.get_state()["adam_steps"].tolist() == [2**24 + 1]
