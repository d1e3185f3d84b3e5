import numpy as np
import pytest
import torch

from strategies.optimizers import Adam, Sgd

GRADIENTS = np.random.default_rng(0).normal(size=(20, 5))
CASES = [
    (lambda: Sgd(5, 0.0), lambda p: torch.optim.SGD(p, lr=0.3, maximize=True)),
    (lambda: Sgd(5, 0.7), lambda p: torch.optim.SGD(p, lr=0.3, momentum=0.7, maximize=True)),
    (lambda: Adam(5, 0.8, 0.95), lambda p: torch.optim.Adam(p, lr=0.3, betas=(0.8, 0.95), maximize=True)),
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


@pytest.mark.parametrize("make", [make for make, _ in CASES])
def test_goes_on_from_its_state(make):
    whole, first, second = make(), make(), make()
    steps = [whole.step(gradient, 0.1) for gradient in GRADIENTS]
    for gradient in GRADIENTS[:7]:
        first.step(gradient, 0.1)
    second.load_state_dict(first.state_dict())
    assert np.array_equal([second.step(gradient, 0.1) for gradient in GRADIENTS[7:]], steps[7:])
