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

    A video that cannot be made costs one line, and is the last one.
    """

    def __init__(self, run: Run, console: Console):
        self._run, self._console = run, console
        self._every = run.config.run.video_every
        self._folder = run.folder / VIDEOS
        self._dispatch = Dispatch(ProcessTransport(LowPriority, 1))
        self._ticket: int | None = None
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
            if self._dispatch.collect([self._ticket], timeout) is None:
                return False
        except (EngineError, OSError) as error:  # the latter if no process can replace a lost one
            self._give_up(str(error))
        self._ticket = None
        return True

    def _begin_next(self) -> bool:
        """Begins with the first video that is missing. Returns whether there is one."""
        policy = next((each for each in self._list_due() if not self._name_video(each).exists()), None)
        if policy is None:
            return False
        arguments = policy, self._name_video(policy), self._run.config.run.seed, self._run.evaluation_cap
        try:
            self._folder.mkdir(exist_ok=True)
            self._ticket = self._dispatch.submit(film_policy, *arguments, tuple(self._run.config.trusted_modules))
        except OSError as error:  # of the folder, or of a process that cannot be started
            self._give_up(f"{error.strerror}: {self._folder}")
            return False
        return True

    def _list_due(self) -> list[Path]:
        every = self._every
        return [each for each in list_kept_files(self._run.folder) if every and int(each.stem) % every == 0]

    def _count_done(self) -> tuple[int, int]:
        due = self._list_due()
        return sum(self._name_video(each).exists() for each in due), len(due)

    def _name_video(self, policy: Path) -> Path:
        return self._folder / f"{policy.stem}.mp4"

    def _give_up(self, reason: str) -> None:
        self._console.print_notice(f"training goes on without videos: {reason.partition(chr(10))[0]}")
        self._every = None


def film_policy(
    host: LowPriority, policy: Path, video: Path, seed: int, max_episode_steps: int | None, imports: Sequence[str]
) -> None:
    """Films an episode of a policy file. It is called in the other process."""
    from hebbes.reporting.film import Scene, describe_policy, film_scenes  # imports OpenCV

    saved = read_policy_file(policy, imports)
    scene = Scene(describe_policy(saved), saved, make_evaluation_spec(saved.environment))
    film_scenes(video, [scene], seed=seed, max_episode_steps=max_episode_steps, every=_FRAME_EVERY)
