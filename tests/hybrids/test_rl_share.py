import numpy as np
import pytest

from hebbes.hybrids.rl_share import RLShare, compute_rl_probability


def draw_all(share, number, rng):
    drawn = []
    for _ in range(number):
        drawn.append(share.draw(rng))
        share.count(drawn[-1])
    return drawn


@pytest.mark.parametrize(
    ("num_rl", "num_es", "target", "probability"),
    [
        (1, 1, 0.5, 0.5),
        (50, 50, 0.495, 0.25),
        (50, 50, 0.505, 0.75),
        (1, 3, 0.5, 1.0),
        (3, 1, 0.5, 0.0),
        (1, 9, 0.1, 0.5),
        (1, 10_000, 0.0, 0.0),
        (10_000, 1, 1.0, 1.0),
    ],
)
def test_probabilities_by_hand(num_rl, num_es, target, probability):
    assert compute_rl_probability(num_rl, num_es, target) == pytest.approx(probability)


@pytest.mark.parametrize("target", [0.0, 0.1, 0.5, 0.9, 1.0])
def test_the_share_comes_close_to_its_target_and_reaches_both_ends(target):
    drawn = draw_all(RLShare(target), 2000, np.random.default_rng(0))
    assert np.mean(drawn) == pytest.approx(target, abs=0.01 if 0 < target < 1 else 0)


def test_the_same_seed_gives_the_same_draws_and_so_does_a_restored_state():
    first, second, restored = (RLShare(0.5) for _ in range(3))
    drawn = draw_all(first, 60, np.random.default_rng(3))
    rng = np.random.default_rng(3)
    before = draw_all(second, 30, rng)
    restored.load_state_dict(second.state_dict())
    assert before + draw_all(restored, 30, rng) == drawn


def test_refuses_what_it_cannot_use():
    with pytest.raises(KeyError, match="num_es"):
        RLShare(0.5).load_state_dict({"num_rl": np.array(1)})
