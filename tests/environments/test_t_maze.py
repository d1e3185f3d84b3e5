"""The T-maze: its rules, and that nobody does better than chance without seeing the rewards."""

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from hebbes.environments.ids import resolve

TRIALS = 9
BLIND = {
    "always left": lambda rng, k: 0,
    "always right": lambda rng, k: 1,
    "alternate": lambda rng, k: k % 2,
    "switch at half-time": lambda rng, k: int(k >= TRIALS // 2),
    "random": lambda rng, k: int(rng.integers(2)),
}


def _make(**options):
    return gymnasium.make(resolve("TMaze-v0").environment, disable_env_checker=True, **options)


def _play(env, seed, choose):
    """The info of reset, the observations and the rewards of an episode; choose(trial) is the arm."""
    observation, info = env.reset(seed=seed)
    observations, rewards, trial, ended = [observation], [], 0, False
    while not ended:
        action = choose(trial) if observation[2:].any() else 1 - choose(trial)  # matters only at the junction
        observation, reward, ended, truncated, _ = env.step(action)
        observations.append(observation)
        rewards.append(reward)
        trial += observation[0] == 1
        assert not truncated
    return info, np.array(observations), np.array(rewards)


@pytest.mark.parametrize("options", [{}, {"delay": 3}, {"delay": 1, "junctions": 3, "trials": 5}])
def test_it_keeps_gymnasiums_promises(options):
    check_env(_make(**options).unwrapped)


def test_an_episode_by_hand():
    info, observations, rewards = _play(_make(trials=6, delay=2), 0, lambda trial: 0)
    walk = [[1, 0, 0], [0, 0, 1], [0, 1, 0], [0, 1, 0]]
    assert observations.tolist() == walk * 6 + walk[:1]
    assert not rewards.reshape(6, 4)[:, :3].any()
    first = 1 if info["good_arms"][0] == 0 else -1
    assert 2 <= info["change"] < 4
    assert rewards[3::4].tolist() == [first] * info["change"] + [-first] * (6 - info["change"])


def test_the_reward_comes_with_the_choice_without_delay():
    _, observations, rewards = _play(_make(trials=4), 0, lambda trial: 0)
    assert observations.tolist() == [[1, 0, 0], [0, 0, 1]] * 4 + [[1, 0, 0]]
    assert np.abs(rewards).tolist() == [0, 1] * 4


def test_every_junction_has_its_good_arm():
    env, seen = _make(trials=300, junctions=2), set()
    for seed in range(12):
        info, observations, rewards = _play(env, seed, lambda trial: 1)
        visits = observations[1::2, 2:].argmax(axis=1)
        good = info["good_arms"][visits] ^ (np.arange(300) >= info["change"])
        assert rewards[1::2].tolist() == [1 if arm else -1 for arm in good]
        assert 100 < visits.sum() < 200
        seen.add(tuple(info["good_arms"]))
    assert len(seen) == 4


@pytest.mark.parametrize("junctions", [1, 2])
@pytest.mark.parametrize("blind", list(BLIND))
def test_chance_is_what_the_blind_can_expect(blind, junctions):
    """Observations do not depend on the arms or the change; episodes with opposite arms are as likely, and cancel."""
    env, rng = _make(trials=TRIALS, junctions=junctions), np.random.default_rng(0)
    plan = [BLIND[blind](rng, trial) for trial in range(TRIALS)]
    returns: dict = {}
    counts = np.zeros(2**junctions)
    seen: dict = {}
    for seed in range(600):
        info, observations, rewards = _play(env, seed, plan.__getitem__)
        key = info["change"], tuple(observations[1::2, 2:].argmax(axis=1)) if junctions > 1 else ()
        arms = tuple(info["good_arms"].tolist())
        counts[int("".join(map(str, arms)), 2)] += 1
        returns.setdefault(key, {})[arms] = rewards.sum()
        seen.setdefault(key, set()).add(observations.tobytes())
    pairs = 0
    for by_arms in returns.values():
        for arms, total in by_arms.items():
            opposite = tuple(1 - arm for arm in arms)
            if opposite in by_arms:
                assert total == -by_arms[opposite]
                pairs += 1
    assert pairs >= 6
    assert all(len(observations) == 1 for observations in seen.values())
    assert np.abs(counts / 600 - 1 / 2**junctions).max() < 0.08
    assert {key[0] for key in returns} == {3, 4, 5}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"trials": 2}, r"trials must be an integer in \[3, 100000\], got 2"),
        ({"delay": -1}, "delay"),
        ({"trials": 250_000_000}, "trials must be an integer in .*, got 250000000"),
        ({"junctions": 0.5}, "junct"),
        ({"delay": True}, "delay must be an integer in .*, got True"),
    ],
)
def test_options_that_make_no_maze_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        _make(**options)
