"""TD3's rule (Fujimoto et al. 2018, algorithm 1): which networks move after which env step, and how far."""

from dataclasses import dataclass

import numpy as np
import pytest
import torch

import hebbes
from hebbes.hybrids.td3 import TD3


@dataclass(frozen=True)
class Update:
    """What one call of `TD3.train` has done."""

    env_step: int
    has_trained_critics: bool
    has_trained_actor: bool


SEEN: list[Update] = []


class WatchedTD3(TD3):
    """Checks all networks after every call of `train`."""

    def train(self, env_steps, rng):
        """Trains, and compares what was before with what came of it."""
        critics, actor, rate = self.learner.critics, self._actors.trained, self.settings.target_rate
        networks = {"critics": critics.trained.rows, "actor": actor.rows, "target": self._target.rows}
        before = {name: rows.clone() for name, rows in networks.items()} | {"targets": critics.targets.clone()}
        target_actors = []
        train_critics = self.learner.train_critics
        self.learner.train_critics = lambda target, rng: target_actors.append(target) or train_critics(target, rng)
        super().train(env_steps, rng)
        del self.learner.train_critics
        assert target_actors == [self._target]
        moved = {name: not torch.equal(rows, before[name]) for name, rows in networks.items()}
        share = rate if moved["actor"] else 0.0
        for of, now, trained in (
            ("target", self._target.rows, actor.rows),
            ("targets", critics.targets, networks["critics"]),
        ):
            expected = (1 - share) * before[of] + share * trained
            torch.testing.assert_close(now, expected, rtol=1e-5, atol=1e-7)
            assert torch.equal(now, before[of]) is not moved["actor"]
        np.testing.assert_array_equal(self.actor, actor.rows[0].numpy())
        SEEN.append(Update(env_steps, moved["critics"], moved["actor"]))


@pytest.mark.parametrize("policy_delay", [1, 2, 3])
def test_the_critics_move_after_every_env_step_and_all_else_after_every_policy_delay(policy_delay, tmp_path):
    SEEN.clear()
    options = {
        **{"environment": "Pendulum-v1", "algorithm": f"{__name__}:WatchedTD3", "hidden_sizes": [8], "threads": 1},
        **{"start_steps": 193, "max_env_steps": 200, "batch_size": 4, "target_rate": 0.1, "policy_delay": policy_delay},
        **{"eval_episodes": 1, "test_episodes": 0, "folder": str(tmp_path)},
    }
    hebbes.train(options, trainer="hybrid", quiet=True)
    steps = range(1, 8)  # gradient steps, of which the first follows env step 194
    assert [Update(193 + step, True, step % policy_delay == 0) for step in steps] == SEEN
