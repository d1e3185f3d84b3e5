"""The options of `evaluate_static`, which those of `evaluate_hebbian` extend."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, fields

from hebbes.contracts.option import check_options, check_seeds, option
from hebbes.contracts.policy import Policy
from hebbes.environments.environment_spec import BACKENDS
from hebbes.environments.morphologies import identify_morphology, pin_morphology
from hebbes.evaluation.arguments import IMPORT_HELP, MAX_EPISODES
from hebbes.execution.engine_options import resolve_num_threads
from hebbes.options.reference_options import ReferenceOptions

ALL_MORPHOLOGIES = ("none", "left", "right")
"""The morphologies that `--damage all` stands for."""


@dataclass(frozen=True)
class EvaluateConfig(ReferenceOptions):
    """Options of an evaluation."""

    path_weights: tuple[str, ...] = option(
        (),
        "the policy files to evaluate, released ones by zoo:NAME, or folders of runs, of which best.dat is taken",
    )
    environment: str | None = option(None, "Gymnasium id (default: the one in the file)")
    policy: str | None = option(
        None,
        "policy of files that torch.save wrote; the rest follows Najarro & Risi's code",
        choices=("mlp", "cnn"),
    )
    episodes: int = option(20, "episodes to play for each seed", range=f"in [1, {MAX_EPISODES}]")
    seed: int = option(0, "first seed of the start states; episode k depends only on the seed and k", range=">= 0")
    seeds: int = option(1, "how many seeds: the first and those that follow it", range=">= 1")
    backend: str | None = option(
        None, "simulator (default: gymnasium; envpool for ids that only EnvPool has)", choices=("auto", *BACKENDS)
    )
    threads: int = option(-1, "threads or worker processes; -1 means all cores")
    max_episode_steps: int | None = option(
        None,
        "cap on the env steps of an episode (default: the environment's, or that of training if it has none)",
        range=">= 1",
    )
    episode_timeout: float | None = option(
        None,
        "seconds for each episode of a chunk; if all together need more, all of them fail, and the worker process is "
        "replaced (default: no limit)",
        range="> 0",
    )
    damage: tuple[str, ...] = option(
        (),
        "morphologies to compare: none, left, right, FILE.xml; all is the first three (default: those of the training)",
    )
    training_wrappers: bool = option(False, "also apply the wrappers meant for training, such as early stopping")
    render: bool = option(False, "show the episodes of one file and one seed on the screen, one after another")
    video: str | None = option(
        None,
        "write a video of the first episode of one file, without intervention, on its first morphology, to this .mp4 "
        "or .gif file",
    )
    json: bool = option(False, "print one JSON object and nothing else")
    imports: tuple[str, ...] = option((), IMPORT_HELP, flag="import")

    def __post_init__(self) -> None:
        check_options(self)
        resolve_num_threads(self.threads)
        if not all(self.path_weights) or not self.path_weights:
            raise ValueError("path_weights must name policy files")
        if self.seeds * self.episodes > MAX_EPISODES:
            most = f"{MAX_EPISODES // self.episodes} with {self.episodes} episodes each"
            raise ValueError(f"seeds must be <= {most}, got {self.seeds}; did you mean --seed?")
        check_seeds(self.seed, self.seeds)
        self._check_combinations()

    def _check_combinations(self) -> None:
        resolved = [os.path.realpath(path) for path in self.path_weights]
        for number, path in enumerate(resolved):
            if path in resolved[:number]:
                raise ValueError(f"path_weights names {self.path_weights[number]} twice")
        if self.policy is not None and self.environment is None:
            raise ValueError("policy needs environment: the two describe a file that torch.save wrote")
        for name in self.collect_given(fields(ReferenceOptions)) if self.policy is None else ():
            raise ValueError(f"{name} needs policy and a file that torch.save wrote; other files hold their own")
        for name in ("render", "video"):
            if getattr(self, name) and (len(resolved) > 1 or self.seeds > 1):
                raise ValueError(f"{name} takes one file and one seed, got {len(resolved)} and {self.seeds}")
        if self.render and self.episode_timeout is not None:
            raise ValueError("episode_timeout cannot be used with render, which plays in this process")

    @property
    def all_seeds(self) -> range:
        """The evaluation's seeds."""
        return range(self.seed, self.seed + self.seeds)

    def choose_morphologies(self, trained: tuple[str, ...]) -> tuple[str, ...]:
        """The morphologies to play on, each once: those of `--damage`, or those of the training."""
        requested = [
            morphology
            for name in self.damage
            for morphology in (ALL_MORPHOLOGIES if name == "all" else (pin_morphology(name),))
        ]
        found: dict[str, str] = {}
        for morphology in requested or trained:
            found.setdefault(identify_morphology(morphology), morphology)
        return tuple(found.values())

    def check_policies(self, policies: Mapping[str, Policy]) -> None:
        """Raises ValueError if the options do not fit the policies, which are given by the path of their file."""

    def make_variants(self, path: str, policy: Policy, longest: int | None) -> dict[str, Policy]:
        """The intact policy of a file, under "", and one policy for each intervention, under its description.

        `longest` is the largest number of env steps in an episode, None if it is not known. Raises ValueError if an
        intervention does not fit the policy, or no episode reaches its env step.
        """
        return {"": policy}
