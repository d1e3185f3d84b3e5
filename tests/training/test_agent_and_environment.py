"""Options select the wrappers, the policy and the action head."""

import numpy as np
import pytest
from gymnasium.spaces import Box, Discrete, MultiBinary, MultiDiscrete

from hebbes.options.command_line import parse_config
from hebbes.training import agent_and_environment
from hebbes.training.agent_and_environment import make_agent, make_environment_spec
from hebbes.training.assemble_run import resolve_policy
from tests.training.scripted_runs import make_config

COLOR = Box(0, 255, (96, 100, 3), np.uint8)
VECTOR = Box(-1, 1, (5,), np.float32)
ACTIONS = Box(-1, 1, (3,), np.float32)
FIRST = Box(0, 255, (3, 96, 100), np.uint8)
BYTES = Box(0, 255, (2,), np.uint8)


@pytest.fixture
def wrappers_for(monkeypatch):
    """A function that returns names and arguments of the wrappers for an environment with these spaces."""

    def find_wrappers(observation_space, action_space=ACTIONS, **options):
        monkeypatch.setattr(agent_and_environment, "find_spaces", lambda spec: (observation_space, action_space))
        spec = make_environment_spec(make_config(environment="CartPole-v1", **options))
        return [(wrapper.name, dict(wrapper.kwargs)) for wrapper in (*spec.wrappers, *spec.training_wrappers)]

    return find_wrappers


@pytest.mark.parametrize("game", ["Freeway-v5", "Backgammon-v5"])
def test_fire_is_refused_in_games_where_it_would_be_another_action(game):
    with pytest.raises(ValueError, match=f"fire_reset: {game} has no action FIRE, or not as action 1"):
        make_environment_spec(make_config(environment=game, fire_reset=True))


def test_images_are_turned_gray_shrunk_stacked_and_scaled_in_this_order(wrappers_for):
    assert wrappers_for(COLOR, grayscale=True, frame_stack=4, resize=(40, 30)) == [
        ("grayscale", {}),
        ("resize", {"size": [40, 30]}),
        ("frame_stack", {"num_frames": 4}),
        ("scale", {}),
        ("clip_action", {}),
    ]


@pytest.mark.parametrize(
    ("shape", "resize", "expected"),
    [
        ((96, 100, 3), None, {"size": [84, 84]}),
        ((210, 160, 3), None, {"size": [84, 84]}),
        ((84, 84, 3), None, None),
        ((64, 64, 3), None, None),
        ((64, 100, 1), None, None),
        ((64, 64, 3), (64, 32), {"size": [64, 32]}),
        ((64, 64, 3), (64, 64), None),
    ],
)
def test_images_are_only_ever_shrunk(wrappers_for, shape, resize, expected):
    found = wrappers_for(Box(0, 255, shape, np.uint8), resize=resize)
    assert dict(found).get("resize") == expected


@pytest.mark.parametrize(
    ("observation_space", "options", "expected"),
    [
        (VECTOR, {}, ["clip_action"]),
        (VECTOR, {"frame_stack": 2}, ["frame_stack", "clip_action"]),
        (Discrete(7), {}, ["one_hot", "clip_action"]),
        (Discrete(7), {"frame_stack": 2}, ["one_hot", "frame_stack", "clip_action"]),
        (FIRST, {"grayscale": True}, ["channels_last", "grayscale", "resize", "scale", "clip_action"]),
        (COLOR, {"grayscale": True, "crop": (0, 9, 2, 0)}, ["crop", "grayscale", "resize", "scale", "clip_action"]),
        (COLOR, {"crop": (6, 6, 8, 8)}, ["crop", "scale", "clip_action"]),
        (Box(0, 255, (3, 8, 6), np.uint8), {}, ["channels_last", "scale", "clip_action"]),
        (
            Box(0, 255, (3, 210, 160), np.uint8),
            {"atari_42": True},
            ["channels_last", "atari_42", "running_normalization", "clip_action"],
        ),
        (VECTOR, {"action_bounds": "tanh"}, ["clip_action"]),
        (VECTOR, {"action_bounds": "rescale"}, ["rescale_action"]),
        (VECTOR, {"settle_steps": 3, "fire_reset": True}, ["settle", "fire_reset", "clip_action"]),
        (
            VECTOR,
            {"wrappers": ("unfit_classes:ByForwarding",), "early_stop_negative_streak": 0},
            ["clip_action", "unfit_classes:ByForwarding", "early_stop"],
        ),
    ],
)
def test_options_become_wrappers(wrappers_for, observation_space, options, expected):
    assert [name for name, _ in wrappers_for(observation_space, **options)] == expected


@pytest.mark.parametrize(
    ("space", "expected"),
    [
        (Discrete(2), []),
        (Discrete(2, start=1), ["choose_action"]),
        (MultiDiscrete([2, 3]), ["choose_action"]),
        (MultiBinary(2), ["choose_action"]),
        (BYTES, ["choose_action"]),
        (Box(-1, 1, (2, 3)), ["flatten_action", "clip_action"]),
        (Box(-1, 1, ()), ["flatten_action", "clip_action"]),
    ],
)
def test_the_wrappers_of_actions(wrappers_for, space, expected):
    assert wrappers_for(VECTOR, space) == [(name, {}) for name in expected]


@pytest.mark.parametrize(
    ("shape", "expected"),
    [((16, 16, 3), "cnn"), ((15, 84, 3), "mlp"), ((84, 15, 3), "mlp"), ((84, 84), "mlp"), ((4,), "mlp")],
)
def test_auto_takes_convolutions_where_they_leave_something(shape, expected):
    config = parse_config("static", ["--environment", "CartPole-v1", "--policy", "auto"], "")
    assert resolve_policy(config, Box(0, 1, shape)).choices.policy == expected


@pytest.mark.parametrize(
    ("spaces", "options", "expected"),
    [
        ((COLOR, ACTIONS), {"crop": (1, 0, 60, 40)}, r"crop leaves nothing: .* for images of \[96, 100\]"),
        ((VECTOR, Discrete(2)), {"action_bounds": "tanh"}, "action_bounds 'tanh' needs Box actions"),
        ((VECTOR, Discrete(2)), {"action_bounds": "none"}, "action_bounds 'none' needs Box actions of real numbers"),
        ((VECTOR, Box(0, 9, (3,), np.int64)), {"action_bounds": "none"}, "'none' needs Box actions of real numbers"),
        ((VECTOR, MultiBinary(2)), {"action_bounds": "rescale"}, "action_bounds 'rescale' needs Box actions of real"),
        ((VECTOR, BYTES), {"action_bounds": "tanh"}, "needs Box actions of real numbers.*: give --action_bounds clip"),
    ],
)
def test_an_option_that_would_do_nothing_is_refused(wrappers_for, spaces, options, expected):
    with pytest.raises(ValueError, match=expected):
        wrappers_for(*spaces, **options)


@pytest.mark.parametrize(
    ("action_space", "bounds", "outputs", "head"),
    [
        (Discrete(4), "clip", 4, "argmax"),
        (ACTIONS, "clip", 3, "identity"),
        (ACTIONS, "rescale", 3, "tanh"),
        (ACTIONS, "tanh_sigmoid", 3, "tanh_sigmoid"),
        (ACTIONS, "none", 3, "identity"),
    ],
)
def test_the_agent_fits_the_spaces(action_space, bounds, outputs, head):
    options = {"environment": "CartPole-v1", "policy": "mlp", "hidden_sizes": (9,), "bias": True}
    config = make_config(**options, action_bounds=bounds)
    agent = make_agent(config, VECTOR, action_space)
    policy = agent.policy
    assert (policy.observation_shape, policy.num_outputs, policy.hidden_sizes, policy.bias) == (
        (5,),
        outputs,
        (9,),
        True,
    )
    assert agent.action_head == head


def test_a_plastic_policy_gets_its_own_options():
    settings = {"hebb_rule": "ABC", "init_weights": "zeros", "sharing": "layer", "update_every": 3}
    settings |= {"modulation": "reward", "eligibility": True}
    policy = make_agent(make_config("hebbian", environment="CartPole-v1", **settings), VECTOR, Discrete(4)).policy
    assert {name: getattr(policy, name) for name in settings} == settings


def test_a_plastic_policy_is_left_to_its_own_program_which_takes_static_ones_too():
    config = make_config("static", environment="CartPole-v1", policy="hebbian", update_every=3)
    with pytest.raises(
        ValueError, match=r"^policy 'hebbian' is not for this program; train it with python train_hebbian.py$"
    ):
        make_agent(config, VECTOR, Discrete(4))
    config = make_config("hebbian", environment="CartPole-v1", policy="mlp", hidden_sizes=(3,))
    assert make_agent(config, VECTOR, Discrete(4)).policy.hidden_sizes == (3,)


def test_actions_without_numbers_are_refused():
    config = make_config(environment="CartPole-v1", policy="linear")
    with pytest.raises(ValueError, match=r"^CartPole-v1: its actions Box\(.*\) have no numbers$"):
        make_agent(config, VECTOR, Box(-1, 1, (0,)))
