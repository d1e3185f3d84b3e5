"""Videos of episodes."""

import os
from math import isfinite
from pathlib import Path
from types import TracebackType
from typing import Self

import cv2
import numpy as np
from jaxtyping import UInt8


def check_video_path(path: Path) -> None:
    """Refuses, before any episode is played, a path that no video can be written to."""
    if path.suffix != ".mp4":
        raise ValueError(f"--video must name an .mp4 file, not {str(path)!r}")
    if not path.parent.is_dir():
        raise ValueError(f"--video {path}: the folder {path.parent} does not exist")
    if path.is_dir() or not os.access(path.parent, os.W_OK):
        raise ValueError(f"--video {path}: no file can be written there")


class VideoWriter:
    """Writes frames to an .mp4 file (MPEG-4 part 2); use it as a context manager. Needs no display.

    The encoder drops the last row or column of frames with an odd height or width.
    """

    def __init__(self, path: Path, fps: float) -> None:
        check_video_path(path)
        if not (isfinite(fps) and fps > 0):
            raise ValueError(f"frames per second must be positive and finite, not {fps}")
        self._path = path
        self._fps = fps
        self._shape: tuple[int, ...] | None = None

    def write(self, frame: UInt8[np.ndarray, "height width 3"]) -> None:
        """Appends one RGB frame; all frames have the size of the first."""
        if frame.dtype != np.uint8 or frame.ndim != 3 or frame.shape[2] != 3:
            raise ValueError(f"a frame must be uint8 of shape (height, width, 3), not {frame.dtype} of {frame.shape}")
        if self._shape is None:
            self._open(frame.shape)
        if frame.shape != self._shape:
            raise ValueError(f"a frame must have the first one's shape {self._shape}, not {frame.shape}")
        self._writer.write(cv2.cvtColor(frame, cv2.COLOR_RGB2BGR))

    def _open(self, shape: tuple[int, ...]) -> None:
        height, width, _ = shape
        self._writer = cv2.VideoWriter(str(self._path), cv2.VideoWriter.fourcc(*"mp4v"), self._fps, (width, height))
        if not self._writer.isOpened():
            raise OSError(f"cannot write the video {self._path}")
        self._shape = shape

    def close(self) -> None:
        """Completes the file; without it no player opens it. Without a frame there is no file."""
        if self._shape is not None:
            self._writer.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()
