"""Both back ends keep the contract of BatchEnv, with real simulators."""

import os
from pathlib import Path

import gymnasium
import numpy as np
import pytest
from gymnasium.spaces import Discrete
from jaxtyping import Int

from hebbes.environments import envpool_env, gymnasium_simulator
from hebbes.environments.envpool_env import EnvPoolEnv
from hebbes.environments.gymnasium_env import GymnasiumEnv
from hebbes.environments.ids import register

STICKY = {"repeat_action_probability": 0.25}

FAMILIES = [
    *[("envpool", name, {}) for name in ("CartPole-v1", "Pendulum-v1", "Acrobot-v1", "MountainCarContinuous-v0")],
    *[("envpool", name, {}) for name in ("LunarLander-v3", "BipedalWalker-v3", "CarRacing-v3", "FrozenLake-v1")],
    *[("envpool", name, {}) for name in ("HalfCheetah-v5", "Ant-v5", "Hopper-v5", "Walker2d-v5", "Swimmer-v5")],
    *[("envpool", name, {}) for name in ("Humanoid-v5", "Reacher-v5")],
    ("envpool", "LunarLander-v3", {"continuous": True}),
    ("envpool", "Pong-v5", STICKY),
    *[("gymnasium", name, {}) for name in ("CartPole-v1", "FrozenLake-v1", "LunarLander-v3", "HalfCheetah-v5")],
    *[("gymnasium", name, {}) for name in ("BipedalWalker-v3", "BipedalWalkerHardcore-v3")],
    *[("gymnasium", name, {}) for name in ("AntBulletEnv-v0", "HopperBulletEnv-v0")],
    pytest.param("gymnasium", "Pong-v5", STICKY, marks=pytest.mark.slow),
]

ONE_START_STATE = ("FrozenLake-v1", "Pong-v5")


def make(backend, name, seeds, env_kwargs=None, threads=1):
    register(name, ())
    if backend == "envpool":
        return EnvPoolEnv(name, seeds, env_kwargs or {}, threads=threads)
    return GymnasiumEnv(name, seeds, env_kwargs or {})


def draw_actions(env, rng, count):
    """`count` times the same random action."""
    space = env.action_space
    if isinstance(space, Discrete):
        return np.full(count, rng.integers(space.n))
    return np.repeat(rng.uniform(space.low, space.high)[np.newaxis], count, axis=0)


def play(env, episode, *, actions_seed, length) -> list[np.ndarray]:
    """Everything that an episode returns. Sub-environments are left out after the end of their episodes."""
    rng = np.random.default_rng(actions_seed)
    seen: list[np.ndarray] = [env.start(episode)]
    active: Int[np.ndarray, " active"] = np.arange(env.num_envs)
    for _ in range(length):
        if not active.size:
            break
        step = env.step(draw_actions(env, rng, len(active)), active)
        seen += [step.observations, step.rewards, step.terminated, step.truncated, *step.info.values()]
        active = active[~(step.terminated | step.truncated)]
    return seen


def assert_same(seen, expected):
    assert len(seen) == len(expected)
    for mine, other in zip(seen, expected, strict=True):
        np.testing.assert_array_equal(mine, other)


@pytest.mark.parametrize(("backend", "name", "env_kwargs"), FAMILIES)
def test_start_depends_on_seed_and_episode_alone(backend, name, env_kwargs):
    seeds = [3, 3, 4]
    reused, fresh = make(backend, name, seeds, env_kwargs), make(backend, name, seeds, env_kwargs, threads=2)
    first = play(reused, 0, actions_seed=1, length=30)
    reused.start(1)
    rng = np.random.default_rng(2)
    reused.step(draw_actions(reused, rng, 2), np.array([2, 0]))
    reused.step(draw_actions(reused, rng, 1), np.array([2]))
    third = play(reused, 2, actions_seed=3, length=12)
    assert_same(third, play(fresh, 2, actions_seed=3, length=12))
    assert_same(play(reused, 0, actions_seed=1, length=30), first)
    np.testing.assert_array_equal(third[0][0], third[0][1])
    if name not in ONE_START_STATE:
        assert (third[0][0] != third[0][2]).any()
        assert (third[0] != first[0]).any()
    reused.close()
    fresh.close()
    fresh.close()


def test_an_episode_that_has_ended_does_not_disturb_the_start_of_the_next():
    # CarRacing is replayed like MuJoCo, but its episodes differ in length: driving straight on leaves the field
    reused, fresh = make("envpool", "CarRacing-v3", [3, 4]), make("envpool", "CarRacing-v3", [3, 4])
    reused.start(0)
    active = np.arange(2)
    for _ in range(1000):
        step = reused.step(np.repeat([[0.0, 1.0, 0.0]], len(active), axis=0), active)
        active = active[~(step.terminated | step.truncated)]
        if len(active) < 2:
            break
    assert len(active) < 2
    assert_same(play(reused, 1, actions_seed=3, length=12), play(fresh, 1, actions_seed=3, length=12))


@pytest.mark.parametrize("backend", ["envpool", "gymnasium"])
@pytest.mark.parametrize("name", ["LunarLander-v3", "FrozenLake-v1", "CartPole-v1"])
def test_equal_seeds_give_equal_episodes_and_do_not_disturb_each_other(backend, name):
    pair, single = make(backend, name, [5, 5]), make(backend, name, [5])
    both, alone = play(pair, 1, actions_seed=0, length=15), play(single, 1, actions_seed=0, length=15)
    for two, one in zip(both, alone, strict=True):
        np.testing.assert_array_equal(two, np.concatenate([one, one]))


@pytest.mark.parametrize("backend", ["envpool", "gymnasium"])
def test_rows_follow_the_ids(backend):
    forward, backward = make(backend, "Pendulum-v1", [1, 2, 3]), make(backend, "Pendulum-v1", [1, 2, 3])
    forward.start(0)
    backward.start(0)
    actions = np.array([[-2.0], [0.5], [2.0]])
    expected = forward.step(actions, np.arange(3))
    step = backward.step(actions[::-1], np.array([2, 1, 0]))
    np.testing.assert_array_equal(step.observations, expected.observations[::-1])
    np.testing.assert_array_equal(step.rewards, expected.rewards[::-1])
    assert step.rewards.dtype == np.float64
    assert step.info == {}


def test_arrays_returned_earlier_stay_as_they_were():
    env = make("envpool", "Pendulum-v1", [1, 2])
    first = env.start(0)
    kept = first.copy()
    for _ in range(20):
        env.step(np.ones((2, 1)), np.arange(2))
    np.testing.assert_array_equal(first, kept)


@pytest.mark.parametrize("backend", ["envpool", "gymnasium"])
def test_a_fall_terminates_and_the_registrys_time_limit_truncates(backend, monkeypatch):
    cart = make(backend, "CartPole-v1", [0])
    cart.start(0)
    steps = [cart.step(np.ones(1, np.int64), np.zeros(1, np.int64))]
    while not steps[-1].terminated[0]:
        assert not steps[-1].truncated[0]
        steps.append(cart.step(np.ones(1, np.int64), np.zeros(1, np.int64)))
    assert 7 < len(steps) < 13
    assert not steps[-1].truncated[0]

    monkeypatch.setattr(gymnasium.registry["Pendulum-v1"], "max_episode_steps", 7)
    pendulum = make(backend, "Pendulum-v1", [0])
    pendulum.start(0)
    flags = [pendulum.step(np.zeros((1, 1)), np.zeros(1, np.int64)) for _ in range(7)]
    assert [bool(step.truncated[0]) for step in flags] == [False] * 6 + [True]
    assert not any(step.terminated[0] for step in flags)


@pytest.mark.slow
@pytest.mark.parametrize("env_kwargs", [{}, {"frameskip": 1}, {"frameskip": 3}])
def test_pong_is_the_same_on_both_back_ends(env_kwargs):
    pool, single = (make(backend, "Pong-v5", [7], env_kwargs) for backend in ("envpool", "gymnasium"))
    seen = play(pool, 0, actions_seed=0, length=25)
    assert_same(seen, play(single, 0, actions_seed=0, length=25))
    assert seen[0].shape == (1, 210, 160, 3)
    for env in (pool, single):
        assert env.observation_space.shape == (210, 160, 3)
        assert env.action_space.n == 6
        assert set(env.step(np.zeros(1, np.int64), np.array([0])).info) == {"lives"}


def test_breakout_lives_are_the_same_on_both_back_ends():
    fire_then_wait = [1, *[0] * 60]
    lives = {}
    for backend in ("envpool", "gymnasium"):
        env = make(backend, "Breakout-v5", [1])
        env.start(0)
        lives[backend] = [int(env.step(np.array([a]), np.array([0])).info["lives"][0]) for a in fire_then_wait]
    assert lives["envpool"] == lives["gymnasium"]
    assert (lives["envpool"][0], lives["envpool"][-1]) == (5, 4)


@pytest.mark.parametrize("backend", ["envpool", "gymnasium"])
def test_wrong_options_of_atari_are_refused_and_episodes_cut_at_the_same_frame(backend, monkeypatch):
    monkeypatch.setattr(gymnasium_simulator if backend == "gymnasium" else envpool_env, "ATARI_FRAMES", 24)
    for wrong in (0, -4, 1.5):
        with pytest.raises(ValueError, match=f"frameskip of 'Pong-v5' must be an integer >= 1, got {wrong}"):
            make(backend, "Pong-v5", [0], {"frameskip": wrong}).start(0)
    for name in ("mode", "difficulty"):
        with pytest.raises(ValueError, match=f"{name} of 'Pong-v5' must be an integer >= 0, got -1"):
            make(backend, "Pong-v5", [0], {name: -1}).start(0)
    env = make(backend, "Pong-v5", [0], {"frameskip": 8})
    env.start(0)
    truncated = [bool(env.step(np.array([0]), np.array([0])).truncated[0]) for _ in range(3)]
    assert truncated == [False, False, True]


@pytest.mark.parametrize("backend", ["envpool", "gymnasium"])
def test_sticky_actions_differ_by_seed_and_only_where_asked_for(backend):
    def traces_differ(env_kwargs):
        env = make(backend, "Pong-v5", [1, 2], env_kwargs)
        seen = play(env, 0, actions_seed=5, length=30)
        return any(not np.array_equal(array[0], array[1]) for array in seen if array.ndim == 4)

    assert traces_differ(STICKY)
    assert not traces_differ({})


@pytest.mark.parametrize("backend", ["envpool", "gymnasium"])
def test_frozen_lake_is_the_slippery_four_by_four_map(backend):
    env = make(backend, "FrozenLake-v1", list(range(300)))
    assert (env.start(0) == 0).all()
    cells, counts = np.unique(env.step(np.full(300, 2), np.arange(300)).observations, return_counts=True)
    assert list(cells) == [0, 1, 4]  # right: a third each stays (up), right and down
    assert (counts > 70).all()  # 100 +- 8
    ends: set[int] = set()
    goal_rewards: set[float] = set()
    active, rng = np.arange(300), np.random.default_rng(0)
    while active.size:
        step = env.step(rng.integers(4, size=len(active)), active)
        ends |= set(step.observations[step.terminated].tolist())
        goal_rewards |= set(step.rewards[step.observations == 15].tolist())
        assert not step.rewards[step.observations != 15].any()
        active = active[~(step.terminated | step.truncated)]
    assert ends == {5, 7, 11, 12, 15}  # S F F F / F H F H / F F F H / H F F G
    assert goal_rewards == {1.0}


def test_float32_actions_reach_float64_simulators_whole():
    env = make("envpool", "HalfCheetah-v5", [0, 0])
    env.start(0)
    row = np.linspace(-1, 1, 6, dtype=np.float32)
    padded = np.zeros((2, 12), np.float32)
    padded[:, ::2] = row
    strided = env.step(padded[:, ::2], np.arange(2))
    env.start(0)
    whole = env.step(np.stack([row, row]).astype(np.float64), np.arange(2))
    np.testing.assert_array_equal(strided.observations, whole.observations)
    assert whole.observations.dtype == np.float64


@pytest.mark.slow
def test_rebuilding_leaks_neither_threads_nor_memory():
    env = make("envpool", "CartPole-v1", [0] * 8, threads=2)

    def resources():
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        return len(list(Path("/proc/self/task").iterdir())), pages * os.sysconf("SC_PAGE_SIZE") / 2**20

    for episode in range(50):
        env.start(episode)
    threads, mebibytes = resources()
    for episode in range(1000):
        env.start(episode)
    threads_after, mebibytes_after = resources()
    assert threads_after <= threads
    assert mebibytes_after - mebibytes < 10


@pytest.mark.parametrize(
    ("name", "shape"), [("CartPole-v1", (400, 600, 3)), ("CarRacing-v3", (400, 600, 3)), ("Pong-v5", (210, 160, 3))]
)
def test_sub_environment_zero_is_rendered(name, shape):
    register(name, ())
    env = GymnasiumEnv(name, [0, 0], {}, render_mode="rgb_array")
    env.start(0)
    frame = env.render()
    assert (frame.shape, frame.dtype) == (shape, np.uint8)
    for _ in range(10):
        env.step(draw_actions(env, np.random.default_rng(1), 1), np.array([0]))
    assert (env.render() != frame).any()
    env.close()
    with pytest.raises(ValueError, match="render_mode 'rgb_array', got None"):
        make("gymnasium", "CartPole-v1", [0]).render()


def test_atari_in_real_time_has_sixty_frames_of_the_game_in_a_second():
    for frameskip in (4, 2):
        env = make("gymnasium", "Pong-v5", [0], {"frameskip": frameskip})
        assert env.metadata["render_fps"] == 60 / frameskip
        env.close()


def test_the_camera_follows_a_robot_of_mujoco():
    env = GymnasiumEnv("HalfCheetah-v5", [0], {}, render_mode="rgb_array")
    env.start(0)
    simulator = env._envs[0].unwrapped

    def count_orange():
        frame = env.render().astype(int)
        return np.count_nonzero(frame[..., 0] - frame[..., 2] > 40)

    at_start = count_orange()
    simulator.set_state(np.array([30.0, *simulator.data.qpos[1:]]), simulator.data.qvel)
    assert count_orange() > at_start / 2 > 0
    env.close()
