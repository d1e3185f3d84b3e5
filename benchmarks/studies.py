"""The studies of docs/protocol.md that `python -m benchmarks.results` repeats: which runs, and how long they take."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Method:
    """A way to train."""

    program: str
    options: Mapping[str, str] = field(default_factory=dict)
    merged_from: str | None = None
    """Go on from the run of this method with the same seed, its rules merged to NUM_RULES."""


@dataclass(frozen=True)
class Study:
    """Runs of several methods in several environments, with several seeds each."""

    minutes: Mapping[str, float]
    """Environment -> estimate for a run, of one core."""
    methods: Mapping[str, Method]
    """Name -> method."""
    options: Mapping[str, str]
    """Those of all runs."""
    seeds: Sequence[int]
    morphologies: Sequence[str] = ()
    """If given, the policies are played in each of these after training, and each has its own row in the table."""


NUM_RULES = 32
HYBRIDS = ("td3", "cem_rl", "p_cem_rl", "acem_rl", "one_plus_one_rl", "aes_rl")
SWIMMER = {
    "preset": {"sigma": "0.05", "learning_rate": "0.02", "weight_decay": "0.0025", "weight_penalty": "0"},
    "swept": {"sigma": "0.313", "learning_rate": "0.0766", "weight_decay": "0.0863", "weight_penalty": "0.0325"},
}
ATTRACTORS = {
    "A": {"normalization": "none"},
    "B": {},
    "C": {"update_every": "4"},
    "D": {"activity_window": "10"},
    "E": {"update_every": "4", "activity_window": "10"},
}
"""The conditions of Dittrich et al. 2026, arXiv 2603.22512."""
STUDIES = {
    "hybrids": Study(
        minutes={"HalfCheetah-v5": 30, "Swimmer-v5": 30},
        methods={name: Method("train_hybrid.py", {"algorithm": name}) for name in HYBRIDS},
        options={"max_env_steps": "100000", "threads": "1"},
        seeds=range(5),
    ),
    "hybrids_long": Study(
        minutes={"HalfCheetah-v5": 300},
        methods={name: Method("train_hybrid.py", {"algorithm": name}) for name in ("td3", "cem_rl", "aes_rl")},
        options={"max_env_steps": "1000000", "threads": "1"},
        seeds=range(3),
    ),
    "presets": Study(
        minutes={
            "HalfCheetah-v5": 6,
            "Hopper-v5": 4,
            "Walker2d-v5": 60,
            "Swimmer-v5": 2,
            "Ant-v5": 25,
            "InvertedPendulum-v5": 1,
            "InvertedDoublePendulum-v5": 5,
            "Reacher-v5": 6,
            "Pusher-v5": 8,
            "HumanoidStandup-v5": 25,
            "LunarLander-v3": 5,
            "BipedalWalker-v3": 25,
            "Acrobot-v1": 1,
            "MountainCarContinuous-v0": 1,
            "Pendulum-v1": 1,
            "CartPole-v1": 1,
        },
        methods={"preset": Method("train_static.py")},
        options={"test_episodes": "100", "threads": "1"},
        seeds=range(40, 45),
    ),
    "humanoid": Study(
        minutes={"Humanoid-v5": 100},
        methods={"preset": Method("train_static.py")},
        options={"max_env_steps": "10000000", "test_episodes": "100", "threads": "1"},
        seeds=range(20, 25),
    ),
    "car_racing": Study(
        minutes={"CarRacing-v3": 100},
        methods={
            "static": Method("train_static.py", {"preset": "pgpe"}),
            "plastic": Method("train_hebbian.py", {"preset": "pgpe"}),
        },
        options={"test_episodes": "100", "threads": "1"},
        seeds=range(20, 23),
    ),
    "car_racing_linear": Study(
        minutes={"CarRacing-v3": 110},
        methods={
            "static": Method("train_static.py", {"preset": "linear"}),
            "plastic": Method("train_hebbian.py", {"preset": "linear"}),
        },
        options={"test_episodes": "100", "threads": "1"},
        seeds=range(20, 23),
    ),
    "car_racing_long": Study(
        minutes={"CarRacing-v3": 330},
        methods={
            "static": Method("train_static.py", {"preset": "gru", "episode_seeds": "paired", "eval_every": "40"}),
            "plastic": Method("train_hebbian.py", {"preset": "linear", "episode_seeds": "paired", "eval_every": "20"}),
        },  # 32 and 64 members: both have an evaluation after equally many episodes
        options={
            "max_env_steps": "12000000",
            "eval_episodes": "50",
            "test_episodes": "100",
            "threads": "1",
        },
        seeds=range(23, 26),
    ),
    "swimmer": Study(
        minutes={"Swimmer-v5": 2},
        methods={name: Method("train_static.py", settings) for name, settings in SWIMMER.items()},
        options={"max_env_steps": "2000000", "test_episodes": "100", "threads": "1"},
        seeds=range(310, 350),
    ),
    "attractors": Study(
        minutes={"HalfCheetah-v5": 4},
        methods={name: Method("train_hebbian.py", settings) for name, settings in ATTRACTORS.items()},
        options={
            "hidden_sizes": "16",
            "output_activity": "action",
            "max_env_steps": "5000000",
            "test_episodes": "100",
            "threads": "1",
        },
        seeds=range(400, 403),
    ),
    "ant_damage": Study(
        minutes={"AntBulletEnv-v0": 60},
        methods={
            "static": Method("train_static.py", {"preset": "damage"}),
            "plastic": Method("train_hebbian.py", {"preset": "damage"}),
            "merged": Method("train_hebbian.py", {"preset": "damage"}, merged_from="plastic"),
        },
        options={
            "max_env_steps": "5000000",
            "generations": "none",
            "population_size": "100",
            "test_episodes": "0",
            "threads": "1",
        },
        seeds=range(20, 23),
        morphologies=("none", "right", "left"),
    ),
}
