"""Videos of episodes: H.264 in .mp4 files, which every browser plays. Needs no display.

PyAV is imported with the first frame, because that takes a while, and because its libraries print a warning on macOS
if OpenCV's are loaded, too.
"""

from contextlib import ExitStack, suppress
from fractions import Fraction
from importlib.util import find_spec
from math import isfinite
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

import numpy as np
from jaxtyping import UInt8

from hebbes.environments.environment_spec import EnvironmentSpec
from hebbes.evaluation.play import play_episode
from hebbes.files.atomic_file import check_place, replace_file
from hebbes.files.policy_file import SavedPolicy

if TYPE_CHECKING:
    from av.video.frame import VideoFrame

FRAMES_PER_SECOND = 50.0
"""Close to real time for most simulated robots."""

_BT601, _LIMITED_RANGE = 6, 1
"""FFmpeg's numbers for the colors that its conversion from RGB makes. Without them, some players assume others."""


def check_video_path(path: Path) -> None:
    """Raises ValueError if no video can be written to the path. Called before any episode is played."""
    if path.suffix != ".mp4":
        raise ValueError(f"--video must name an .mp4 file, not {str(path)!r}")
    check_place("--video", path)
    if find_spec("av") is None:
        raise ValueError("--video needs the package av, which is not installed: pip install av")


class VideoWriter:
    """Writes frames to an .mp4 file as they come. Use it as a context manager.

    The complete file appears at the end of the context. If the context raises, or gets no frame, no file appears. A
    frame of odd height or width gets its last row or column twice, because H.264 stores colors of two by two pixels.
    """

    def __init__(self, path: Path, fps: float) -> None:
        check_video_path(path)
        if not (isfinite(fps) and fps > 0):
            raise ValueError(f"frames per second must be positive and finite, not {fps}")
        self.num_frames = 0
        """Number of frames written so far."""
        self._path = path
        self._fps = fps
        self._shape: tuple[int, ...] | None = None
        self._open_files = ExitStack()

    @property
    def seconds(self) -> float:
        """Playing time of the frames written so far."""
        return self.num_frames / self._fps

    def write(self, frame: UInt8[np.ndarray, "height width 3"]) -> None:
        """Appends one RGB frame of the first frame's size. Raises OSError if it cannot be written."""
        if frame.dtype != np.uint8 or frame.ndim != 3 or frame.shape[2] != 3 or 0 in frame.shape:
            raise ValueError(f"a frame must be uint8 of shape (height, width, 3), not {frame.dtype} of {frame.shape}")
        if self._shape is not None and frame.shape != self._shape:
            raise ValueError(f"a frame must have the first one's shape {self._shape}, not {frame.shape}")
        from av import FFmpegError, VideoFrame

        height, width, _ = frame.shape
        even = np.pad(frame, ((0, height % 2), (0, width % 2), (0, 0)), mode="edge")
        try:
            if self._shape is None:
                self._open(even.shape)
                self._shape = frame.shape
            self._encode(VideoFrame.from_ndarray(even, format="rgb24"))
        except (FFmpegError, OSError) as error:
            raise self._make_error(error) from error
        self.num_frames += 1

    def _open(self, shape: tuple[int, ...]) -> None:
        import av

        temporary = self._open_files.enter_context(replace_file(self._path))
        options = {"movflags": "faststart"}  # a web page can play the beginning before it has the end
        self._container = self._open_files.enter_context(av.open(str(temporary), "w", "mp4", options=options))
        self._stream = self._container.add_stream("libx264", rate=Fraction(self._fps).limit_denominator(1000))
        self._stream.height, self._stream.width, _ = shape
        self._stream.pix_fmt = "yuv420p"  # the pixel format that browsers play
        self._stream.codec_context.colorspace = _BT601
        self._stream.codec_context.color_range = _LIMITED_RANGE

    def _encode(self, frame: "VideoFrame | None") -> None:
        """Encodes a frame. None encodes the frames that the encoder still holds, a few dozen at most."""
        self._container.mux(self._stream.encode(frame))

    def _make_error(self, error: Exception) -> OSError:
        reason = getattr(error, "strerror", None) or error
        return OSError(f"cannot write the video {self._path}: {reason}")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._shape is None:
            self._open_files.close()  # no frame came, or the file could not be opened
            return
        from av import FFmpegError

        if error is not None:
            with suppress(FFmpegError, OSError):  # on a full disk closing fails, too
                self._open_files.__exit__(kind, error, traceback)
            return
        try:
            with self._open_files:
                self._encode(None)
        except (FFmpegError, OSError) as failure:
            raise self._make_error(failure) from failure


def film_episode(
    path: Path, saved: SavedPolicy, environment: EnvironmentSpec, *, seed: int, max_episode_steps: int | None
) -> VideoWriter:
    """Writes a video of the first episode of `evaluation.play.play`. Returns the writer, which knows the length.

    Raises OSError, ValueError or NotImplementedError if that fails.
    """
    with VideoWriter(path, FRAMES_PER_SECOND) as video:
        play_episode(
            saved,
            environment,
            episode=0,
            seed=seed,
            max_episode_steps=max_episode_steps,
            render_mode="rgb_array",
            show_frame=video.write,
        )
    return video
