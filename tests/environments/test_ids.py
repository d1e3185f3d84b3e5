"""The names that users give to environments, and the current ids."""

import sys

import gymnasium
import pytest

from hebbes.environments import ids as environment_ids
from hebbes.environments.ids import find_atari_game, register, resolve

HINT = "if a package of yours registers it, add --import PACKAGE"

TODAYS = [
    *("CartPole-v1", "CartPole-v0", "Pendulum-v1", "CarRacing-v3", "LunarLander-v3", "FrozenLake8x8-v1"),
    *("HalfCheetah-v5", "AntBulletEnv-v0", "Pong-v5", "MiniGrid-Empty-5x5-v0"),
]

RENAMED = {
    "CarRacing": ("CarRacing-v3", {}),
    "CarRacing-v0": ("CarRacing-v3", {}),
    "CarRacing-v1": ("CarRacing-v3", {}),
    "CarRacing-v2": ("CarRacing-v3", {}),
    "HalfCheetah": ("HalfCheetah-v5", {}),
    "HalfCheetah-v2": ("HalfCheetah-v5", {}),
    "Ant-v3": ("Ant-v5", {}),
    "InvertedDoublePendulum-v4": ("InvertedDoublePendulum-v5", {}),
    "LunarLander-v2": ("LunarLander-v3", {}),
    "LunarLanderContinuous": ("LunarLander-v3", {"continuous": True}),
    "LunarLanderContinuous-v2": ("LunarLander-v3", {"continuous": True}),
    "LunarLanderContinuous-v3": ("LunarLander-v3", {"continuous": True}),
    "Pendulum-v0": ("Pendulum-v1", {}),
    "FrozenLake": ("FrozenLake-v1", {}),
    "AntBulletEnv": ("AntBulletEnv-v0", {}),
    "Blackjack": ("Blackjack-v1", {}),  # Atari has a Blackjack-v5
    "Pong": ("Pong-v5", {}),
    "ALE/Pong-v5": ("Pong-v5", {"repeat_action_probability": 0.25}),
    "PongDeterministic-v4": ("Pong-v5", {}),
    "PongDeterministic-v0": ("Pong-v5", {"repeat_action_probability": 0.25}),
    "PongNoFrameskip-v4": ("Pong-v5", {"frameskip": 1}),
    "PongNoFrameskip-v0": ("Pong-v5", {"frameskip": 1, "repeat_action_probability": 0.25}),
}


@pytest.mark.parametrize("name", TODAYS)
def test_current_ids_stay_without_a_notice(name):
    resolved = resolve(name)
    assert (resolved.environment, resolved.env_kwargs, resolved.notice) == (name, {}, None)


@pytest.mark.parametrize(("name", "expected"), RENAMED.items())
def test_other_names_become_current_ids_with_one_line_of_notice(name, expected):
    resolved = resolve(name)
    assert (resolved.environment, resolved.env_kwargs) == expected
    assert resolved.notice is not None
    assert resolved.notice.startswith(f"{name} means {expected[0]}")
    assert "\n" not in resolved.notice
    assert all(f"{option}={value}" in resolved.notice for option, value in expected[1].items())


@pytest.mark.parametrize(
    ("name", "suggestion"),
    [
        ("CarRacing-v9", "CarRacing-v3"),
        ("carracing-v3", "CarRacing-v3"),
        ("HalfCheeta-v5", "HalfCheetah-v5"),
        ("AntBulletEnv-v7", "AntBulletEnv-v0"),
        ("Pongg-v5", "Pong-v5"),
        ("Pong-v4", "Pong-v5"),
        ("Pongg", "Pong-v5"),
        ("breakout", "Breakout-v5"),
    ],
)
def test_an_unknown_id_gets_a_suggestion(name, suggestion):
    with pytest.raises(
        ValueError, match=f"^unknown environment '{name}'; {HINT}; otherwise, did you mean '{suggestion}'\\?$"
    ):
        resolve(name)


def test_every_atari_game_has_a_short_name():
    register("ALE/Pong-v5", ())
    games = [name.removeprefix("ALE/").removesuffix("-v5") for name in gymnasium.registry if name.startswith("ALE/")]
    assert len(games) > 100
    elsewhere = {"Blackjack"}  # Gymnasium's own
    for game in games:
        assert resolve(f"{game}-v5").environment == f"{game}-v5"
        assert (resolve(game).environment == f"{game}-v5") == (game not in elsewhere)
        assert resolve(f"{game}NoFrameskip-v4").env_kwargs == {"frameskip": 1}


def test_nothing_near_no_suggestion():
    with pytest.raises(ValueError, match=f"^unknown environment 'qqqqqqqq'; {HINT}$"):
        resolve("qqqqqqqq")


def test_a_missing_package_is_named(monkeypatch):
    monkeypatch.setattr(environment_ids, "find_spec", lambda package: None)
    monkeypatch.delitem(gymnasium.registry, "AntBulletEnv-v0", raising=False)
    with pytest.raises(ValueError, match=r"'AntBulletEnv-v0'.*pybullet_envs_gymnasium.*not installed"):
        resolve("AntBulletEnv-v0")


@pytest.fixture
def my_arm(tmp_path, monkeypatch):
    """A user's package, which registers my/Arm-v2 when it is imported."""
    (tmp_path / "my_arms.py").write_text(
        "import gymnasium\ngymnasium.register('my/Arm-v2', entry_point='gymnasium.envs.classic_control:PendulumEnv')\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    yield "my_arms"
    sys.modules.pop("my_arms", None)
    gymnasium.registry.pop("my/Arm-v2", None)


def test_a_users_package_is_imported_first(my_arm):
    assert resolve("my/Arm-v2", [my_arm]).environment == "my/Arm-v2"
    assert resolve("my/Arm", [my_arm]).environment == "my/Arm-v2"


def test_a_name_may_bring_its_package(my_arm):
    resolved = resolve("my_arms:my/Arm-v2")
    assert (resolved.environment, resolved.imports, resolved.notice) == ("my/Arm-v2", ("my_arms",), None)
    short = resolve("my_arms:my/Arm", ["math", "my_arms"])
    assert (short.environment, short.imports) == ("my/Arm-v2", ("math", "my_arms"))
    assert short.notice == "my/Arm means my/Arm-v2"
    assert resolve("CartPole-v1", ["math"]).imports == ("math",)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("no_such:Mine-v0", "^--environment no_such:Mine-v0: cannot import 'no_such': ModuleNotFoundError"),
        (":Mine-v0", "^--environment :Mine-v0: '' is not the name of a module"),
        (
            "my_arms:my/Leg-v2",
            "^unknown environment 'my/Leg-v2'; my_arms did not register it, did you mean 'my/Arm-v2'\\?$",
        ),
        ("my_arms:", "^unknown environment ''; my_arms did not register it$"),
    ],
)
def test_a_package_or_a_name_that_is_not_there(my_arm, name, reason):
    with pytest.raises(ValueError, match=reason):
        resolve(name)


def test_a_users_package_that_is_not_there():
    with pytest.raises(
        ValueError, match=r"^--import: cannot import 'no_such_package': ModuleNotFoundError: No module named"
    ):
        register("CartPole-v1", ["no_such_package"])


@pytest.mark.parametrize(
    ("name", "game"),
    [("Pong-v5", "Pong"), ("HalfCheetah-v5", None), ("Nothing-v5", None), ("ALE/Pong-v5", None), ("Pong-v4", None)],
)
def test_atari_games_are_told_from_other_ids(name, game):
    assert find_atari_game(name) == game
