"""Films: an episode of each of several policies in one video, each frame with a caption and the return so far."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil
from pathlib import Path

import cv2
import numpy as np
from jaxtyping import UInt8

from hebbes.environments.environment_spec import EnvironmentSpec
from hebbes.evaluation.play import play_episode
from hebbes.files.policy_file import SavedPolicy
from hebbes.recording.console import Console
from hebbes.reporting.video import VideoWriter, find_frame_rate

MIN_WIDTH = 320
"""Narrower frames are enlarged by a whole factor, so that the text is legible."""

_FONT, _BAND, _MARGIN = cv2.FONT_HERSHEY_SIMPLEX, 32, 8
"""OpenCV's font, and the height and margin in pixels of the band with the text."""
_GROUND, _INK = 24, (240, 240, 240)


@dataclass(frozen=True)
class Scene:
    """A policy to film, in an environment with one morphology."""

    caption: str
    saved: SavedPolicy
    environment: EnvironmentSpec


def describe_policy(saved: SavedPolicy) -> str:
    """When the policy was saved, as in 'generation 120'. Empty if the file does not say."""
    unit = saved.provenance.get("unit")
    if isinstance(unit, str) and isinstance(saved.provenance.get(unit), int):
        return f"{unit} {saved.provenance[unit]:,}"
    env_steps = saved.provenance.get("env_steps")
    return f"{env_steps:,} env steps" if isinstance(env_steps, int) else ""


def film_scenes(
    path: Path,
    scenes: Sequence[Scene],
    *,
    seed: int,
    max_episode_steps: int | None = None,
    every: int = 1,
    fps: float | None = None,
    console: Console | None = None,
) -> VideoWriter:
    """Writes the first episode of `evaluation.play.play` of each scene, with every so many frames, and the last one.

    It is shown in real time, or with `fps` frames per second. Returns the writer, which knows the length. OSError
    or ValueError if that fails.
    """
    console = console or Console(quiet=True)
    with VideoWriter(path, max(1.0, find_frame_rate(scenes[0].environment) / every) if fps is None else fps) as video:
        for number, scene in enumerate(scenes, 1):
            with console.phase(f"scene {number} of {len(scenes)}, {scene.caption}"):
                _film_scene(video, scene, seed, max_episode_steps, every)
    return video


def _film_scene(video: VideoWriter, scene: Scene, seed: int, max_episode_steps: int | None, every: int) -> None:
    last: tuple[np.ndarray, float] | None = None
    num_seen = 0

    def show(frame: UInt8[np.ndarray, "height width 3"], total: float) -> None:
        nonlocal last, num_seen
        last, num_seen = (frame, total), num_seen + 1
        if (num_seen - 1) % every == 0:
            video.write(add_caption(frame, scene.caption, total))
            last = None

    play_episode(
        scene.saved,
        scene.environment,
        episode=0,
        seed=seed,
        max_episode_steps=max_episode_steps,
        render_mode="rgb_array",
        show_frame=show,
    )
    if last is not None:
        video.write(add_caption(last[0], scene.caption, last[1]))


def add_caption(
    frame: UInt8[np.ndarray, "height width 3"], caption: str, total: float
) -> UInt8[np.ndarray, "higher wider 3"]:
    """The frame with a band below it: the caption on the left, the return so far on the right."""
    factor = ceil(MIN_WIDTH / frame.shape[1])
    enlarged = frame.repeat(factor, axis=0).repeat(factor, axis=1)
    width = enlarged.shape[1]
    left, right = caption.encode("ascii", "replace").decode(), f"return {total:,.1f}"
    widths = [cv2.getTextSize(text, _FONT, 1.0, 1)[0][0] for text in (left, right)]
    scale = min(0.6, (width - 3 * _MARGIN) / max(1, sum(widths)))
    band = np.full((_BAND, width, 3), _GROUND, np.uint8)
    for text, x in ((left, _MARGIN), (right, width - _MARGIN - ceil(scale * widths[1]))):
        cv2.putText(band, text, (x, _BAND - 11), _FONT, scale, _INK, 1, cv2.LINE_AA)
    return np.concatenate((enlarged, band))
