"""The options of an evaluation, and the policies that they name, checked before anything is played."""

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path

from contracts.policy import Policy
from reporting.video import check_video_path
from rollouts.bodies import identity, pinned
from rollouts.engines import check_episode_timeout, num_threads
from rollouts.environment_ids import endless, resolve
from rollouts.environments import BACKENDS, EnvironmentSpec, spec_to_json
from rollouts.episode import Agent
from rollouts.quiet_simulators import has_display
from training.assembly import spaces
from training.config import MAX_EPISODES
from training.contract_checks import try_policy
from training.evaluation import Played, environment_for
from training.legacy_file import is_legacy, legacy_weights
from training.memory_check import check_evaluation
from training.option import option
from training.policy_file import SavedPolicy, check_fits, load_policy
from training.reference_options import ReferenceOptions, reference_training
from training.weight_file import refusals

ALL_BODIES = ("none", "left", "right")
"""Those that `--damage all` stands for."""


@dataclass(frozen=True)
class EvaluateConfig(ReferenceOptions):
    """Options of an evaluation."""

    path_weights: tuple[str, ...] = option((), "the policy files to evaluate")
    environment: str | None = option(None, "Gymnasium id (default: the one in the file)")
    policy: str | None = option(
        None, "policy of files written by torch.save, mlp or cnn; the rest follows the reference's conventions"
    )
    episodes: int = option(20, "episodes to play for each seed")
    seed: int = option(0, "first seed of the start states, >= 0; episode k depends on the seed and k alone")
    seeds: int = option(1, "how many seeds: the first and those that follow it")
    backend: str | None = option(
        None,
        "simulator that plays (default: gymnasium; envpool for ids that only EnvPool has)",
        choices=("auto", *BACKENDS),
    )
    threads: int = option(-1, "threads or worker processes; -1 means all cores")
    max_episode_steps: int | None = option(None, "cap on the env steps of an episode (default: the environment's)")
    episode_timeout: float | None = option(
        None, "seconds of wall time after which an episode has failed (default: no limit)"
    )
    damage: tuple[str, ...] = option(
        (), "bodies to play on, in a table: none, left, right, FILE.xml; all is the first three (default: the trained)"
    )
    training_wrappers: bool = option(False, "apply the wrappers meant for training too, such as early stopping")
    render: bool = option(False, "show the episodes of one file and one seed on the screen, one after another")
    video: str | None = option(
        None, "write a video of the first episode of one file, intact on its first body, to this .mp4 file"
    )
    json: bool = option(False, "print one JSON object and nothing else")
    imports: tuple[str, ...] = option((), "packages to import first; the files may then name their code", flag="import")

    def __post_init__(self) -> None:
        num_threads(self.threads)
        if not all(self.path_weights) or not self.path_weights:
            raise ValueError("path_weights must name policy files")
        for name, least in (("episodes", 1), ("seed", 0), ("seeds", 1), ("max_episode_steps", 1)):
            value = getattr(self, name)
            if value is not None and value < least:
                raise ValueError(f"{name} must be >= {least}, got {value}")
        if self.episodes > MAX_EPISODES:
            raise ValueError(f"episodes must be <= {MAX_EPISODES}, got {self.episodes}")
        if self.seeds * self.episodes > MAX_EPISODES:
            most = f"{MAX_EPISODES // self.episodes} with {self.episodes} episodes each"
            raise ValueError(f"seeds must be <= {most}, got {self.seeds}; did you mean --seed?")
        check_episode_timeout(self.episode_timeout)
        self._check_together()

    def _check_together(self) -> None:
        resolved = [Path(path).resolve() for path in self.path_weights]
        for number, path in enumerate(resolved):
            if path in resolved[:number]:
                raise ValueError(f"path_weights names {self.path_weights[number]} twice")
        if self.policy is not None and self.environment is None:
            raise ValueError("policy needs environment: the two describe what a file of torch.save is for")
        for name in self.given(fields(ReferenceOptions)) if self.policy is None else ():
            raise ValueError(f"{name} needs policy, for a file of torch.save; other files hold their own")
        for name in ("render", "video"):
            if getattr(self, name) and (len(resolved) > 1 or self.seeds > 1):
                raise ValueError(f"{name} takes one file and one seed, got {len(resolved)} and {self.seeds}")
        if self.render and self.episode_timeout is not None:
            raise ValueError("episode_timeout cannot be used with render, which plays in this process")

    @property
    def all_seeds(self) -> range:
        """The evaluation's seeds."""
        return range(self.seed, self.seed + self.seeds)

    def bodies(self, trained: tuple[str, ...]) -> tuple[str, ...]:
        """The bodies that a policy trained on these plays on, each once."""
        asked = [body for name in self.damage for body in (ALL_BODIES if name == "all" else (pinned(name),))]
        found: dict[str, str] = {}
        for body in asked or trained:
            found.setdefault(identity(body), body)
        return tuple(found.values())

    def check_policies(self, policies: Mapping[str, Policy]) -> None:
        """ValueError where these options are not for the policies, by the paths of their files."""

    def variants(self, path: str, policy: Policy) -> dict[str, Policy]:
        """The policy of a file intact, under "", and with each intervention; ValueError where one is not for it."""
        return {"": policy}

    def prepare_plots(self) -> None:
        """Makes ready for the figures asked for; ValueError where they could not be written."""

    def write_plots(self, evaluated: Sequence["Evaluated"]) -> Iterator[Path]:
        """Writes the figures asked for, and yields their paths; OSError or ValueError where that cannot be done."""
        yield from ()


@dataclass(frozen=True)
class Entry:
    """A policy to evaluate, and where."""

    path: str
    """As the user gave it."""
    saved: SavedPolicy
    """What the file holds, its policy perhaps changed by an intervention."""
    environment: EnvironmentSpec
    """Of one body."""
    variant: str = ""
    """What intervenes in the policy's life; "" for the intact one."""

    @property
    def body(self) -> str:
        """The body that it acts with."""
        (body,) = self.environment.bodies
        return body

    @property
    def seen(self) -> bool:
        """Whether it was trained on that body, in whatever file that lies."""
        return identity(self.body) in map(identity, self.saved.environment.bodies)


@dataclass(frozen=True)
class Evaluated:
    """A policy and what its episodes brought."""

    entry: Entry
    played: Played
    lost: bool = False
    """Whether the engine could not play them; they have all failed then."""


def checked_entries(config: EvaluateConfig) -> list[Entry]:
    """Each file on each body, intact and then its variants; ValueError if one cannot be played or filmed."""
    if config.video is not None:
        check_video_path(Path(config.video))
    loaded = _legacy(config) if config.policy is not None else _self_describing(config)
    by_path = dict(zip(config.path_weights, loaded, strict=True))
    config.check_policies({path: saved.policy for path, saved in by_path.items()})
    entries = [entry for path, saved in by_path.items() for entry in _entries(config, path, saved)]
    if config.render and not has_display():
        raise ValueError("render needs a display, and neither DISPLAY nor WAYLAND_DISPLAY is set; --video needs none")
    config.prepare_plots()
    _check_memory(config, entries)
    specs, cap = [entry.environment for entry in entries], config.max_episode_steps
    for notice in {endless(spec.environment, spec.env_kwargs, cap) for spec in specs} - {""}:
        print(notice, file=sys.stderr)
    return entries


def _check_memory(config: EvaluateConfig, entries: Sequence[Entry]) -> None:
    """Says what the dearest of the entries needs; ValueError where one does not fit."""
    if config.render:
        return
    checked: dict[str, str] = {}
    for entry in entries:
        spec = entry.environment
        label = json.dumps(spec_to_json(spec))
        if label not in checked:
            agent = Agent(entry.saved.policy, entry.saved.action_head)
            timed = config.episode_timeout is not None
            checked[label] = check_evaluation(
                agent, spec, episodes=config.episodes, threads=config.threads, timed=timed
            )
    for notice in dict.fromkeys(filter(None, checked.values())):
        print(notice, file=sys.stderr)


def _entries(config: EvaluateConfig, path: str, saved: SavedPolicy) -> Iterator[Entry]:
    environment = environment_for(saved.environment, backend=config.backend, training_wrappers=config.training_wrappers)
    for name in ("render", "video"):
        if getattr(config, name) and environment.backend != "gymnasium":
            raise ValueError(f"{name} needs the gymnasium back end, got {environment.backend}")
    variants = config.variants(path, saved.policy)
    for body in config.bodies(environment.bodies):
        on_body = replace(environment, bodies=(body,))
        observation_space, action_space = spaces(on_body)
        check_fits(Path(path), saved, observation_space, action_space)
        with refusals(Path(path)):
            try_policy(saved.policy_name, saved.policy, saved.weights, saved.buffers, observation_space)
        for variant, policy in variants.items():
            yield Entry(path, replace(saved, policy=policy), on_body, variant)


def _self_describing(config: EvaluateConfig) -> Iterator[SavedPolicy]:
    """What the files hold, in the environment that the options name."""
    notices = set()
    for path in config.path_weights:
        saved = load_policy(Path(path), config.imports)
        imports = tuple(dict.fromkeys((*saved.environment.imports, *config.imports)))
        environment = replace(saved.environment, imports=imports)
        if config.environment is not None:
            named = resolve(config.environment, imports)
            notices.add(named.notice)
            kept = environment.env_kwargs if named.environment == environment.environment else {}
            env_kwargs = {**kept, **named.env_kwargs}
            environment = replace(
                environment, environment=named.environment, env_kwargs=env_kwargs, imports=named.imports
            )
        yield replace(saved, environment=environment)
    for notice in notices - {None}:
        print(notice, file=sys.stderr)


def _legacy(config: EvaluateConfig) -> Iterator[SavedPolicy]:
    """The weights that torch.save wrote, in the policy and the environment of the options."""
    assert config.environment is not None  # policy needs it
    given = config.given(fields(ReferenceOptions)) | {"policy": config.policy, "import": list(config.imports)}
    trained, environment, agent = reference_training("static", config.environment, given)
    for path in config.path_weights:
        if not is_legacy(Path(path)):
            load_policy(Path(path), config.imports)  # raises for a file that is neither
            raise ValueError(f"policy is for files that torch.save wrote; {path} says itself what it holds")
        weights = legacy_weights(Path(path), agent.policy)
        yield SavedPolicy(agent.policy, trained.policy, weights, {}, agent.action_head, environment, {})
