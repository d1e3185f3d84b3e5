"""Videos of the policies that a run keeps, which another process makes while training goes on."""

import os
from collections.abc import Sequence
from pathlib import Path

from hebbes.contracts.engine import EngineError
from hebbes.evaluation.play import make_evaluation_spec
from hebbes.execution.dispatch import Dispatch
from hebbes.execution.workers import ProcessTransport
from hebbes.files.atomic_file import delete_leftovers
from hebbes.files.policy_file import read_policy_file
from hebbes.files.weight_file import WeightFileError
from hebbes.recording.console import Console
from hebbes.training.run_state import Run
from hebbes.training.saved_runs import list_kept_files

VIDEOS = "videos"
"""The folder of the videos, in the folder of a run. Each has the name of its policy file."""

_NICENESS, _FRAME_EVERY = 10, 2
"""Half the frames take half the time, and show the episode as fast."""


class LowPriority:
    """The host of a process that runs when others leave it time."""

    def __init__(self) -> None:
        os.nice(_NICENESS)

    def abandon(self) -> None:
        """A video goes on."""

    def close(self) -> None:
        """Nothing is kept."""


class BackgroundFilms:
    """Films the kept policies of a run that are due, one after another. What is missing is filmed after a resume.

    A policy file that cannot be read costs one line. So does any other failure, after which no video is made.
    """

    def __init__(self, run: Run, console: Console):
        self._run, self._console = run, console
        self.has_failed = False
        """Whether videos could no longer be made. A resume tries again."""
        self._every = run.config.run.video_every
        self._folder = run.folder / VIDEOS
        self._dispatch = Dispatch(ProcessTransport(LowPriority, 1))
        self._ticket: int | None = None
        self._policy = Path()  # the file that is being filmed
        self._unreadable: set[Path] = set()
        if self._folder.is_dir():
            delete_leftovers(self._folder)

    def advance(self) -> None:
        """Begins with the next video if none is being made."""
        if self._every is not None and self._wait(0):
            self._begin_next()

    def finish(self) -> None:
        """Makes all videos that are missing."""
        with self._console.phase("filming", self._count_done, "kept policies"):
            while self._every is not None and (self._ticket is not None or self._begin_next()):
                self._wait(None)

    def close(self) -> None:
        """Ends the process, whatever it does."""
        self._dispatch.close()

    def _wait(self, timeout: float | None) -> bool:
        """Waits at most so many seconds for the end of the video that is being made; returns whether none is."""
        if self._ticket is None:
            return True
        try:
            if (done := self._dispatch.collect([self._ticket], timeout)) is None:
                return False
            if done[1]:
                self._console.print_notice(f"no video of {done[1]}")
                self._unreadable.add(self._policy)
        except EngineError as error:
            self._give_up(str(error))
        self._ticket = None
        return True

    def _begin_next(self) -> bool:
        """Begins with the first video that is missing. Returns whether there is one."""
        missing = (each for each in self._list_due() if not self._name_video(each).exists())
        policy = next((each for each in missing if each not in self._unreadable), None)
        if policy is None:
            return False
        self._policy = policy
        arguments = policy, self._name_video(policy), self._run.config.run.seed, self._run.evaluation_cap
        try:
            self._folder.mkdir(exist_ok=True)
            self._ticket = self._dispatch.submit(film_policy, *arguments, tuple(self._run.config.trusted_modules))
            return True
        except EngineError as error:  # a process cannot be started
            self._give_up(str(error))
        except OSError as error:
            self._give_up(f"{error.strerror}: {self._folder}")
        return False

    def _list_due(self) -> list[Path]:
        every = self._every
        return [each for each in list_kept_files(self._run.folder) if every and int(each.stem) % every == 0]

    def _count_done(self) -> tuple[int, int]:
        due = self._list_due()
        return sum(self._name_video(each).exists() for each in due), len(due)

    def _name_video(self, policy: Path) -> Path:
        return self._folder / f"{policy.stem}.mp4"

    def _give_up(self, reason: str) -> None:
        self._console.print_notice(f"no more videos: {reason.partition(chr(10))[0]}")
        self._every, self.has_failed = None, True


def film_policy(
    host: LowPriority, policy: Path, video: Path, seed: int, max_episode_steps: int | None, imports: Sequence[str]
) -> str:
    """Films an episode of a policy file. Returns why the file cannot be read, or nothing.

    It is called in the other process.
    """
    from hebbes.reporting.film import Scene, describe_policy, film_scenes  # imports OpenCV

    try:
        saved = read_policy_file(policy, imports)
    except WeightFileError as error:
        return str(error)
    scene = Scene(describe_policy(saved), saved, make_evaluation_spec(saved.environment))
    film_scenes(video, [scene], seed=seed, max_episode_steps=max_episode_steps, every=_FRAME_EVERY)
    return ""
