"""TrainConfig: every option of a training run; each field is a flag of the command line and a key of a preset."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from math import inf, isfinite
from typing import Any

from hebbes.contracts.option import get_flag_name, option
from hebbes.environments.environment_spec import BACKENDS
from hebbes.environments.morphologies import INTACT, check_morphologies, pin_morphology
from hebbes.environments.wrapper_spec import make_wrapper_spec, read_wrapper
from hebbes.execution.engines import ENGINES, check_episode_timeout, resolve_num_threads
from hebbes.policies.base import INITIALIZATIONS
from hebbes.policies.kernels.activations import ACTIVATIONS
from hebbes.recording.tensorboard import check_installed
from hebbes.registry.lookup import is_ours
from hebbes.wrappers.frame_stack import MAX_FRAMES

HEADS_OF_BOUNDS = {
    **{"clip": "identity", "tanh": "tanh", "rescale": "tanh"},
    **{"tanh_sigmoid": "tanh_sigmoid", "none": "identity"},
}
"""The action head for each value of `action_bounds`."""

CHANGEABLE = {
    *("resume", "import", "generations", "max_env_steps", "threads", "engine", "chunk_size", "episode_timeout"),
    *("print_every", "checkpoint_every", "test_episodes", "stop_at_return", "tensorboard"),
}
"""Flags that a resume may change."""

NO_PRESET = "none"
"""The value of `--preset` for which only the shared preset is read."""

NOT_SAVED = {"preset", "config", "resume"}
"""Flags that say where options are read from. They are not options of the run itself."""

VALUES_IN_OLD_CHECKPOINTS = {"early_stop_counts_grace": True}
"""Values of options that checkpoints of earlier versions lack, where these runs behaved unlike the present default."""

GROWTH = ("num_interactions", "population_size_max")
"""Flags of a growing population. They are tuned together with its strategy and its population_size."""

LARGEST_GROWTH = 10
"""A population grows to at most this many times population_size if population_size_max is not given."""

LARGEST_SHIFT = 1e30
"""Largest absolute value of `reward_shift`. The sum of larger ones over an episode might not be finite."""

LEAST_VALUES = {
    "generations print_every checkpoint_every eval_every eval_episodes episodes_per_member chunk_size frame_stack "
    "recurrent_size seeds max_env_steps max_episode_steps episode_cap_min num_interactions population_size_max": 1,
    "seed settle_steps early_stop_grace_steps early_stop_negative_streak test_episodes virtual_batch": 0,
}
"""The least value of options that count something."""

MAX_EPISODES = 1_000_000
"""Far more than any statistics need. It keeps a typing error from filling the memory."""
MAX_SEEDS = 10_000
LARGEST_VALUES = {
    "frame_stack": MAX_FRAMES,
    "episodes_per_member": MAX_EPISODES,
    "eval_episodes": MAX_EPISODES,
    "test_episodes": MAX_EPISODES,
    "seeds": MAX_SEEDS,
}
"""The largest allowed value of options, on any machine."""


@dataclass(frozen=True)
class TrainConfig:
    """Options of a run. Those of the strategy are in `settings`, an instance of its own `Settings`."""

    environment: str = option(
        "CarRacing", "Gymnasium id, or PACKAGE:ID of your own; short and retired names are mapped to today's"
    )
    preset: str | None = option(
        None, "variant of the preset, hebbes/presets/TRAINER/ENVIRONMENT.VARIANT.yaml; none reads the shared one alone"
    )
    config: str | None = option(None, "YAML file of options; they override the preset, and flags override them")
    resume: str | None = option(None, "resume the run, or the runs of several seeds, in this folder")
    generations: int = option(300, "generations to run")
    max_env_steps: int | None = option(None, "stop after the generation that reaches this many env steps")
    stop_at_return: float | None = option(
        None, "stop after the evaluation of the mean policy that reaches this mean return"
    )
    seed: int = option(0, "seed of every random stream, >= 0")
    seeds: int = option(1, "number of runs, one after the other, with --seed and the seeds that follow it")
    threads: int = option(-1, "threads or worker processes; -1 means all cores")
    folder: str = option("weights", "folder of all runs; each is written to FOLDER/ENVIRONMENT/RUN_NAME")
    run_name: str | None = option(None, "name of the run's folder (default: strategy, seed and time)")
    print_every: int = option(1, "generations between lines of progress")
    checkpoint_every: int = option(
        10, "generations between checkpoints, each with latest.dat; a new best.dat is saved with a checkpoint too"
    )

    policy: str = option(
        "auto", "policy by name, or package.module:Class; auto is cnn for images of 16 x 16 pixels or more, else mlp"
    )
    hidden_sizes: tuple[int, ...] = option(
        (128, 64),
        "units of each hidden layer of mlp, cnn and hebbian, and of those before the cell of lstm and gru",
        needs={"policy": ("auto", "mlp", "cnn", "hebbian", "lstm", "gru")},
    )
    recurrent_size: int = option(64, "units of the recurrent cell of lstm and gru", needs={"policy": ("lstm", "gru")})
    activation: str = option(
        "tanh",
        "activation of the hidden layers of mlp, lstm and gru",
        choices=tuple(ACTIVATIONS),
        needs={"policy": ("auto", "mlp", "lstm", "gru")},
    )
    bias: bool = option(False, "give the layers of linear and mlp biases", needs={"policy": ("auto", "linear", "mlp")})
    initialization: str = option(
        "xavier",
        "initial weights of mlp, cnn and small: xavier, with biases of zero, or pytorch, the default of its layers",
        choices=tuple(INITIALIZATIONS),
        needs={"policy": ("auto", "mlp", "cnn", "small")},
    )
    virtual_batch: int = option(
        0,
        "frames of random play whose statistics normalize the convolutions of cnn and conv_lstm; 0 for none",
        needs={"policy": ("auto", "cnn", "conv_lstm")},
    )
    observation_normalization: bool = option(
        False, "normalize observations by the running mean and standard deviation of all those seen in training"
    )
    init_from: str | None = option(
        None, "start from the weights of this policy file, or of a file that the reference saved with torch.save"
    )

    strategy: str = option("openai_es", "strategy by name, or package.module:Class")
    episodes_per_member: int = option(1, "episodes whose mean return is a member's fitness")
    num_interactions: int | None = option(
        None,
        "env steps of a generation; its population grows by population_size until then, up to population_size_max",
    )
    population_size_max: int | None = option(
        None,
        "largest size of a growing population, at least twice population_size (default: ten times population_size)",
        needs={"num_interactions": ()},
    )
    reward_shift: float = option(
        0.0, "added to the reward of every env step, for the fitness only; -1 removes a survival bonus of 1"
    )
    episode_seeds: str = option(
        "common",
        "common: all members of a generation have the same start states (common random numbers); "
        "independent: each member has its own",
        choices=("common", "independent"),
    )
    max_episode_steps: int | None = option(
        None, "cap on the env steps of a training episode (default: the environment's)"
    )
    episode_cap_factor: float | None = option(
        None, "cap training episodes at this many times the mean length of the generation before, > 1"
    )
    episode_cap_min: int | None = option(
        None,
        "smallest value of that cap, and its value in the first generation; max_episode_steps still holds",
        needs={"episode_cap_factor": ()},
    )

    backend: str = option(
        "auto", "simulator; auto is EnvPool where it has the environment, else Gymnasium", choices=("auto", *BACKENDS)
    )
    env_kwargs: Mapping[str, Any] = option({}, "arguments of the simulator, as a YAML mapping")
    imports: tuple[str, ...] = option((), "packages to import first, which register environments", flag="import")
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
        choices=tuple(HEADS_OF_BOUNDS),
    )
    resize: tuple[int, ...] | None = option(
        None, "height and width, in pixels, to shrink images to (default: 84 84 if images are larger)"
    )
    grayscale: bool = option(False, "convert color images to gray")
    atari_42: bool = option(
        False, "preprocess Atari as pytorch-es does: 42 x 42 gray, normalized by the episode's running moments"
    )
    frame_stack: int = option(1, "number of latest observations that the policy sees, the newest last")
    settle_steps: int = option(0, "env steps of zero action at the start of every episode")
    fire_reset: bool = option(False, "press FIRE at the start and after every lost life (Atari)")
    early_stop_negative_streak: int | None = option(
        None, "training only: end an episode after more than this many negative rewards in a row"
    )
    early_stop_grace_steps: int = option(
        0,
        "env steps at the start of an episode whose rewards early stopping ignores",
        needs={"early_stop_negative_streak": ()},
    )
    early_stop_counts_grace: bool = option(
        False,
        "also count rewards within early_stop_grace_steps, as versions without this option did",
        needs={"early_stop_grace_steps": ()},
    )
    gymnasium_wrappers: tuple[Any, ...] = option(
        (),
        "gymnasium.Wrapper classes, innermost first; they select the gymnasium back end: TimeLimit, "
        "package.module:Class, or with arguments 'TimeLimit: {max_episode_steps: 100}'",
        read=read_wrapper,
    )
    wrappers: tuple[Any, ...] = option(
        (), "additional batch wrappers, applied outermost, written like those of gymnasium_wrappers", read=read_wrapper
    )

    engine: str = option(
        "auto",
        "auto: threads for EnvPool, worker processes for Gymnasium; with --threads 1 simulators run in this process, "
        "and a crash of one ends it",
        choices=ENGINES,
    )
    episode_timeout: float | None = option(
        None, "seconds of wall time an episode may take before its worker process is replaced (default: no limit)"
    )
    chunk_size: int | None = option(
        None,
        "members evaluated together, approximately; results depend on it in their last bits "
        "(default: 32 on EnvPool, 4 on Gymnasium)",
    )
    eval_every: int = option(10, "generations between evaluations of the mean policy on fresh episodes")
    eval_episodes: int = option(5, "fresh episodes of such an evaluation; best.dat is the policy with the best mean")
    tensorboard: bool = option(False, "also write the metrics as TensorBoard events (needs tensorboardX)")
    test_episodes: int = option(20, "episodes of best.dat on Gymnasium's own environment after training; 0 for none")

    settings: Any = None
    """The strategy's own `Settings`."""
    typed: frozenset[str] = field(default=frozenset(), compare=False)
    """The flags given on the command line. They must have an effect, see `hebbes.training.unused_options`."""

    def __post_init__(self) -> None:
        resolve_num_threads(self.threads)
        check_episode_timeout(self.episode_timeout)
        check_morphologies(self.morphologies)
        for names, least in LEAST_VALUES.items():
            for name in names.split():
                value = getattr(self, name)
                if value is not None and value < least:
                    raise ValueError(f"{name} must be >= {least}, got {value}")
        for name, most in LARGEST_VALUES.items():
            if getattr(self, name) > most:
                hint = "; did you mean --seed?" if name == "seeds" else ""
                raise ValueError(f"{name} must be <= {most}, got {getattr(self, name)}{hint}")
        self._check_budget()
        if any(size < 1 for size in self.hidden_sizes):
            raise ValueError(f"hidden_sizes must be >= 1, got {list(self.hidden_sizes)}")
        if self.resize is not None and (len(self.resize) != 2 or min(self.resize) < 1):
            raise ValueError(f"resize must be a height and a width >= 1, got {list(self.resize)}")
        if self.run_name is not None and not re.fullmatch(r"(?!\.)[^/\x00-\x1f]{1,200}", self.run_name):
            raise ValueError(f"run_name must be a plain folder name of at most 200 characters, got {self.run_name!r}")
        if not self.folder:
            raise ValueError("folder must name a folder, got ''")
        try:
            json.dumps(dict(self.env_kwargs), allow_nan=False)
        except (TypeError, ValueError) as error:
            raise ValueError(f"env_kwargs must hold finite numbers, texts, lists and mappings ({error})") from error
        if not all(isinstance(name, str) for name in self.env_kwargs):
            raise ValueError(f"env_kwargs must have names for keys, got {dict(self.env_kwargs)}")
        if "render_mode" in self.env_kwargs:
            raise ValueError("env_kwargs must not hold render_mode; evaluations show episodes with --render")

    def _check_budget(self) -> None:
        if self.episode_cap_factor is not None and not 1 < self.episode_cap_factor < inf:
            raise ValueError(f"episode_cap_factor must be a finite number > 1, got {self.episode_cap_factor}")
        for name in ("reward_shift", "stop_at_return"):
            value = getattr(self, name)
            if value is not None and not isfinite(value):
                raise ValueError(f"{name} must be a finite number, got {value}")
        if abs(self.reward_shift) > LARGEST_SHIFT:
            raise ValueError(f"reward_shift must be within {LARGEST_SHIFT:g} of 0, got {self.reward_shift}")
        if self.tensorboard:
            check_installed()

    @property
    def trusted_modules(self) -> list[str]:
        """Modules of the user's own code that these options name. A file of the run may import them too."""
        return find_users_modules(self.as_options())

    def as_options(self) -> dict[str, Any]:
        """Values by flag, in plain types, without the flags that say where options are read from."""
        own = {get_flag_name(each): getattr(self, each.name) for each in fields(self) if "help" in each.metadata}
        strategy = {each.name: getattr(self.settings, each.name) for each in fields(self.settings)}
        plain = {k: list(v) if isinstance(v, tuple) else v for k, v in {**own, **strategy}.items()}
        return {k: v for k, v in plain.items() if k not in NOT_SAVED}


def find_users_modules(options: Mapping[str, Any]) -> list[str]:
    """Names of the user's own modules in options, given by flag: packages to import, and those of `module:Class`."""
    wrappers = (make_wrapper_spec(entry).name for entry in (*options["gymnasium_wrappers"], *options["wrappers"]))
    classes = (*wrappers, options["policy"], options["strategy"])
    named = [name for name in (options["environment"], *classes) if ":" in name and not is_ours(name)]
    return [*options["import"], *(name.partition(":")[0] for name in named)]
