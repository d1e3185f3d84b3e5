"""The program `film`, which shows how a run learned: an episode of each policy that it kept, in one video."""

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from hebbes.contracts.option import check_options, option
from hebbes.environments.morphologies import shorten_morphology_name
from hebbes.evaluation.arguments import IMPORT_HELP
from hebbes.options.hebbian_evaluation import HebbianEvaluateConfig
from hebbes.options.program_options import parse_options
from hebbes.programs.exit_status import end_cleanly_on_signals, report_errors_in_one_line
from hebbes.recording.console import Console
from hebbes.recording.standard_output import format_stop_message, make_printable, print_or_exit
from hebbes.training.saved_runs import BEST, find_usable_runs, list_kept_files

if TYPE_CHECKING:
    from hebbes.reporting.film import Scene


@dataclass(frozen=True)
class FilmConfig:
    """Options of a film."""

    runs: tuple[str, ...] = option(
        (), "folders of runs, of which the kept policies (--keep_every) and best.dat are filmed, or policy files"
    )
    output: str = option("film.mp4", "the .mp4 or .gif file to write, also -o")
    seed: int = option(0, "seed of the start state, which all episodes share", range=">= 0")
    max_episode_steps: int | None = option(
        None,
        "cap on the env steps of an episode (default: the environment's, or that of training if it has none)",
        range=">= 1",
    )
    frame_every: int = option(1, "env steps between frames", range=">= 1")
    frames_per_second: float | None = option(
        None, "frames that are shown in a second (default: as many as real time takes)", range="in [1, 100]"
    )
    damage: tuple[str, ...] = option(
        (), "morphologies to film: none, left, right, FILE.xml; all is the first three (default: those of the training)"
    )
    lesion: tuple[float, ...] = option(
        (), "film plastic policies also with this fraction of each hidden layer silenced", range="in [0, 1]"
    )
    imports: tuple[str, ...] = option((), IMPORT_HELP, flag="import")

    def __post_init__(self) -> None:
        check_options(self)
        if not self.runs or not all(self.runs):
            raise ValueError("runs must name folders of runs or policy files")


def film(description: str) -> None:
    """Parses the options, films the policies and prints the path of the video."""
    with end_cleanly_on_signals():
        with report_errors_in_one_line():
            config = FilmConfig(**parse_options(FilmConfig, sys.argv[1:], description, "runs"))
            from hebbes.reporting.film import film_scenes  # imports Gymnasium
            from hebbes.reporting.video import check_video_path

            check_video_path("--output", Path(config.output))
            listed, remarks = _list_files(config.runs)
            files = list({os.path.realpath(each): each for each in listed}.values())
        with Console(sys.stderr) as console:
            with report_errors_in_one_line(), console.phase("reading policies"):
                scenes = make_scenes(config, files)
            for line in remarks:
                console.print_notice(line)
            try:
                video = film_scenes(
                    Path(config.output),
                    scenes,
                    seed=config.seed,
                    max_episode_steps=config.max_episode_steps,
                    every=config.frame_every,
                    fps=config.frames_per_second,
                    console=console,
                )
            except (OSError, ValueError) as error:  # of the simulator, or of a full disk
                sys.exit(format_stop_message(error))
        shown = f"{len(scenes)} episodes, {video.num_frames} frames, {video.seconds:.2f} s"
        print_or_exit(f"film  {config.output}  {shown}")


def _list_files(paths: Sequence[str]) -> tuple[list[str], list[str]]:
    """The policy files, in the order of the film, and a line for the user on each run that has only its best policy.

    ValueError if a folder holds no run, or none has a policy yet.
    """
    files, remarks = [], []
    for path in paths:
        if not Path(path).is_dir():
            files.append(path)
            continue
        for folder in find_usable_runs(Path(path), _has_policy, "it has no policy yet"):
            kept, best = list_kept_files(folder), folder / BEST
            if not _has_policy(folder):
                raise ValueError(f"{make_printable(str(folder))} has no policy yet")
            if not kept:
                remarks.append(
                    f"{make_printable(str(folder))} has kept no policies (--keep_every), so only {BEST} is filmed"
                )
            files += map(str, [*kept, *([best] if best.exists() else [])])
    return files, remarks


def _has_policy(folder: Path) -> bool:
    return bool(list_kept_files(folder)) or (folder / BEST).exists()


def make_scenes(config: FilmConfig, files: Sequence[str]) -> list["Scene"]:
    """A scene for each file, morphology and lesion; ValueError for what cannot be filmed."""
    from hebbes.programs.evaluation_entries import load_entries
    from hebbes.reporting.film import Scene, describe_policy
    from hebbes.reporting.video import check_has_images

    evaluation = HebbianEvaluateConfig(
        path_weights=tuple(files),
        seed=config.seed,
        max_episode_steps=config.max_episode_steps,
        damage=config.damage,
        lesion=config.lesion,
        imports=config.imports,
        threads=1,
        episodes=1,
    )
    entries = load_entries(evaluation)
    environments = {entry.environment.environment: entry.path for entry in reversed(entries)}
    if len(environments) > 1:
        named = ", ".join(f"{name} in {path}" for name, path in reversed(environments.items()))
        raise ValueError(f"a film has policies of one environment, got {named}")
    shows_morphology = len({entry.morphology for entry in entries}) > 1
    scenes = []
    for entry in entries:
        if entry.environment.backend != "gymnasium":
            raise ValueError(f"film needs the gymnasium back end, which {entry.environment.environment} does not have")
        best = "best" * (Path(entry.path).name == BEST)
        parts = (
            describe_policy(entry.saved),
            best,
            shorten_morphology_name(entry.morphology) * shows_morphology,
            entry.variant,
        )
        scenes.append(Scene("  ".join(filter(None, parts)), entry.saved, entry.environment))
    for number, scene in enumerate(scenes):
        if all(scene.environment != each.environment for each in scenes[:number]):
            check_has_images("runs", scene.environment)
    return scenes
