import numpy as np
import pytest
import torch

import hebbes
from hebbes.strategies.core.optimizers import SGD, Adam, ClipUp, OptimizerSettings
from tests.strategies.every_strategy import assert_states_equal

GRADIENTS = np.random.default_rng(0).normal(size=(20, 5))
CASES = [
    (lambda: SGD(OptimizerSettings(), 5), lambda p: torch.optim.SGD(p, lr=0.3, maximize=True)),
    (
        lambda: SGD(OptimizerSettings(momentum=0.7), 5),
        lambda p: torch.optim.SGD(p, lr=0.3, momentum=0.7, maximize=True),
    ),
    (
        lambda: Adam(OptimizerSettings(adam_beta1=0.8, adam_beta2=0.95), 5),
        lambda p: torch.optim.Adam(p, lr=0.3, betas=(0.8, 0.95), maximize=True),
    ),
]


@pytest.mark.parametrize(("make", "make_torch"), CASES)
def test_twenty_steps_equal_torchs(make, make_torch):
    optimizer, ours = make(), np.zeros(5)
    theirs = torch.zeros(5, dtype=torch.float64, requires_grad=True)
    torch_optimizer = make_torch([theirs])
    for gradient in GRADIENTS:
        ours = ours + optimizer.step(gradient, 0.3)
        theirs.grad = torch.tensor(gradient)
        torch_optimizer.step()
    assert ours == pytest.approx(theirs.detach().numpy(), rel=1e-9)


def test_clip_up_by_hand():
    optimizer = ClipUp(OptimizerSettings(clip_up_momentum=0.5, max_speed=0.25), 2)
    assert optimizer.step(np.array([30.0, 40.0]), 0.2) == pytest.approx(
        [0.12, 0.16]
    )  # length 0.2, whatever the gradient's
    # 0.5 (0.12, 0.16) + 0.2 (0.6, 0.8) = (0.18, 0.24), 0.3 long, shortened to 0.25
    assert optimizer.step(np.array([3e-9, 4e-9]), 0.2) == pytest.approx([0.15, 0.2])
    assert optimizer.step(np.zeros(2), 0.2) == pytest.approx([0.075, 0.1])


def test_clip_ups_speed_is_limited_to_twice_the_learning_rate_at_hand():
    optimizer = ClipUp(OptimizerSettings(), 1)
    steps = [optimizer.step(np.ones(1), 0.1)[0] for _ in range(4)]
    assert steps == pytest.approx([0.1, 0.19, 0.2, 0.2])
    assert optimizer.step(np.ones(1), 0.01)[0] == pytest.approx(0.02)


@pytest.mark.parametrize(("strategy", "optimizer"), [("openai_es", "adam"), ("openai_es", "sgd"), ("pgpe", "clip_up")])
def test_a_gradient_that_overflows_ends_the_search(strategy, optimizer):
    search = hebbes.Search(strategy, np.ones(6), seed=1, fitness_shaping="raw", optimizer=optimizer)
    search.tell(-np.square(search.ask()).sum(axis=1))
    before = search.state_dict()
    with pytest.raises(FloatingPointError, match=r"^the gradient is too large to follow"):
        search.tell(-1e160 * np.square(search.ask().astype(np.float64)).sum(axis=1))
    assert_states_equal((before, search.state_dict()))


@pytest.mark.parametrize("make", [*(make for make, _ in CASES), lambda: ClipUp(OptimizerSettings(max_speed=0.15), 5)])
def test_goes_on_from_its_state(make):
    whole, first, second = make(), make(), make()
    steps = [whole.step(gradient, 0.1) for gradient in GRADIENTS]
    for gradient in GRADIENTS[:7]:
        first.step(gradient, 0.1)
    second.load_state_dict(first.state_dict())
    assert np.array_equal([second.step(gradient, 0.1) for gradient in GRADIENTS[7:]], steps[7:])
