"""EnvironmentOptions: what a user chooses about an environment, before it is known which wrappers it needs."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hebbes.contracts.option import check_options, option
from hebbes.environments.environment_spec import BACKENDS
from hebbes.environments.morphologies import INTACT, check_morphologies, pin_morphology
from hebbes.environments.part_spec import read_part

ACTION_BOUNDS: dict[str, tuple[str, str | None]] = {
    "clip": ("identity", "clip_action"),
    "tanh": ("tanh", "clip_action"),
    "rescale": ("tanh", "rescale_action"),
    "tanh_sigmoid": ("tanh_sigmoid", "clip_action"),
    "none": ("identity", None),
}
"""Value of `action_bounds` -> the action head for Box actions, and the action wrapper, if there is one."""


@dataclass(frozen=True)
class EnvironmentOptions:
    """An environment, its simulator, and the wrappers that the user adds."""

    id: str = option(
        "CarRacing",
        "Gymnasium id, or PACKAGE:ID of your own; short and retired names are mapped to today's",
        flag="environment",
    )
    backend: str = option(
        "auto", "simulator; auto is EnvPool where it has the environment, else Gymnasium", choices=("auto", *BACKENDS)
    )
    env_kwargs: Mapping[str, Any] = option({}, "arguments of the simulator, as a YAML mapping")
    imports: tuple[str, ...] = option(
        (), "packages to import first, which register environments", flag="import", changeable=True
    )
    morphologies: tuple[str, ...] = option(
        (INTACT,),
        "morphologies in which every episode is played; the fitness is the mean return over them: none (intact), left, "
        "right (an ankle shortened) or the path of an XML file; for AntBulletEnv-v0 and Ant-v5",
        commas=pin_morphology,
    )
    action_bounds: str = option(
        "clip",
        "how outputs become actions within the bounds: clip; tanh, then clip; tanh, then rescale from [-1, 1]; "
        "tanh_sigmoid (first output tanh, others sigmoid, for CarRacing); none: the outputs as they are",
        choices=tuple(ACTION_BOUNDS),
    )
    gymnasium_wrappers: tuple[Any, ...] = option(
        (),
        "gymnasium.Wrapper classes, innermost first; they select the gymnasium back end: TimeLimit, "
        "package.module:Class, or with arguments 'TimeLimit: {max_episode_steps: 100}'",
        read=read_part,
    )
    wrappers: tuple[Any, ...] = option(
        (),
        "batch wrappers, written like those of gymnasium_wrappers; ours go where their flags put them, yours outside "
        "of them, but inside early stopping",
        read=read_part,
    )

    def __post_init__(self) -> None:
        check_options(self)
        check_morphologies(self.morphologies)
        if "render_mode" in self.env_kwargs:
            raise ValueError("env_kwargs must not hold render_mode; evaluations show episodes with --render")
