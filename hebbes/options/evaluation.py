"""The options of an evaluation."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path

from hebbes.contracts.option import option
from hebbes.contracts.policy import Policy
from hebbes.environments.morphologies import identity, pinned
from hebbes.environments.spec import BACKENDS
from hebbes.execution.engines import check_episode_timeout, num_threads
from hebbes.options.reference_options import ReferenceOptions
from hebbes.training.config import MAX_EPISODES

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

    @property
    def plots_folder(self) -> Path | None:
        """The folder for the plots asked for; None where there are none."""
        return None

    @property
    def plotted_layers(self) -> tuple[int, ...]:
        """The layers whose weights are plotted, from 1; all where there are none."""
        return ()
