"""Videos of episodes: H.264 in .mp4 files, which every browser plays, or .gif files. Needs no display.

PyAV is imported with the first frame, because that takes a while, and because its libraries print a warning on macOS
if OpenCV's are loaded, too.
"""

from contextlib import ExitStack, closing, suppress
from fractions import Fraction
from importlib.util import find_spec
from math import isfinite
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from jaxtyping import UInt8

from hebbes.contracts.errors import describe_error
from hebbes.contracts.option import check_argument
from hebbes.environments.environment_spec import EnvironmentSpec
from hebbes.evaluation.play import make_episode_env, play_episode
from hebbes.files.atomic_file import check_place, replace_file
from hebbes.files.policy_file import SavedPolicy

if TYPE_CHECKING:
    from av.video.frame import VideoFrame
    from av.video.stream import VideoStream

FRAMES_PER_SECOND = 50.0
"""Of an environment that does not say how many there are in real time."""

MOST_IN_GIF = 100
"""Frames per second that the format can hold."""

LONGEST_FRAME = 3600.0
"""Seconds. The encoders cannot count much longer ones."""

_BT601, _LIMITED_RANGE = 6, 1
"""FFmpeg's numbers for the colors that its conversion from RGB makes. Without them, some players assume others."""


def check_video_path(option: str, path: Path) -> None:
    """Raises ValueError if no video can be written to the path. Called before any episode is played."""
    check_place(option, path, (".mp4", ".gif"))
    check_encoder(option)


def check_encoder(option: str) -> None:
    """Raises ValueError if no video can be written here."""
    if find_spec("av") is None:
        raise ValueError(f"{option} needs the package av, which is not installed: pip install av")


def check_has_images(option: str, environment: EnvironmentSpec) -> None:
    """Raises ValueError if no image of the environment can be had. Called before any episode is played."""
    try:
        env: Any = make_episode_env(environment, episode=0, seed=0, render_mode="rgb_array")
        with closing(env):
            env.start(0)
            env.render()
    except (OSError, ValueError) as error:
        raise ValueError(f"{option}: {error}") from error
    except Exception as error:  # a user's own environment or wrapper may raise anything
        raise ValueError(f"{option}: {environment.environment} has no images: {describe_error(error)}") from error


class VideoWriter:
    """Writes frames to an .mp4 or .gif file as they come. Use it as a context manager.

    A .gif file shows at most 100 frames in a second. The complete file appears at the end of the context. If the
    context raises, or gets no frame, no file appears. A frame of odd height or width gets its last row or column twice,
    because H.264 stores colors of two by two pixels. The path is one that `check_video_path` has passed.
    """

    def __init__(self, path: Path, fps: float) -> None:
        if not (isfinite(fps) and fps > 0):
            raise ValueError(f"frames per second must be positive and finite, not {fps}")
        self.num_frames = 0
        """Number of frames written so far."""
        self._path = path
        most = MOST_IN_GIF if path.suffix == ".gif" else fps
        seconds = min(1 / min(fps, most), LONGEST_FRAME)
        self._seconds_a_frame = Fraction(seconds).limit_denominator(100_000)
        self._shape: tuple[int, ...] | None = None
        self._open_files = ExitStack()

    @property
    def seconds(self) -> float:
        """Playing time of the frames written so far."""
        return float(self.num_frames * self._seconds_a_frame)

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
            self._write_frame(VideoFrame.from_ndarray(even, format="rgb24"))
        except (FFmpegError, OSError) as error:
            raise self._make_error(error) from error
        self.num_frames += 1

    def _open(self, shape: tuple[int, ...]) -> None:
        import av

        temporary = self._open_files.enter_context(replace_file(self._path))
        kind = self._path.suffix.removeprefix(".")
        options = {"movflags": "faststart"} if kind == "mp4" else {}  # a web page can play the beginning at once
        self._container = self._open_files.enter_context(av.open(str(temporary), "w", kind, options=options))
        self._stream = self._container.add_stream("libx264" if kind == "mp4" else "gif", rate=1 / self._seconds_a_frame)
        self._stream.height, self._stream.width, _ = shape
        self._palette = _PaletteFilter(self._stream, self._seconds_a_frame) if kind == "gif" else None
        if kind == "mp4":
            self._stream.pix_fmt = "yuv420p"  # the pixel format that browsers play
            self._stream.codec_context.colorspace = _BT601
            self._stream.codec_context.color_range = _LIMITED_RANGE

    def _write_frame(self, frame: "VideoFrame") -> None:
        if self._palette is not None:
            frame.pts, frame.time_base = self.num_frames, self._seconds_a_frame
            frame = self._palette.apply(frame)
        self._encode(frame)

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
        from av import FFmpegError

        if error is not None:
            with suppress(FFmpegError, OSError):  # on a full disk closing fails, too
                self._open_files.__exit__(kind, error, traceback)
            return
        if self._shape is None:  # no frame came
            return
        try:
            with self._open_files:
                self._encode(None)
        except (FFmpegError, OSError) as failure:
            raise self._make_error(failure) from failure


class _PaletteFilter:
    """Gives each frame of a GIF its own palette of 256 colors."""

    def __init__(self, stream: "VideoStream", seconds_a_frame: Fraction):
        from av import VideoFormat
        from av.filter import Graph

        stream.pix_fmt = "pal8"
        self._graph = graph = Graph()
        kind = VideoFormat("rgb24", stream.width, stream.height)
        source = graph.add_buffer(width=stream.width, height=stream.height, format=kind, time_base=seconds_a_frame)
        split, sink = graph.add("split"), graph.add("buffersink")
        make, use = graph.add("palettegen", "stats_mode=single"), graph.add("paletteuse", "new=1")
        for first, second, output, place in ((split, use, 0, 0), (split, make, 1, 0), (make, use, 0, 1)):
            first.link_to(second, output, place)
        source.link_to(split)
        use.link_to(sink)
        graph.configure()

    def apply(self, frame: "VideoFrame") -> "VideoFrame":
        """The frame with its palette."""
        self._graph.push(frame)
        return self._graph.vpull()


def find_frame_rate(environment: EnvironmentSpec) -> float:
    """Frames per second in real time: `render_fps` of the environment, or `FRAMES_PER_SECOND` if it does not say.

    ValueError if the environment cannot be made, or has no images.
    """
    env = make_episode_env(environment, episode=0, seed=0, render_mode="rgb_array")
    try:
        said = getattr(env, "metadata", {}).get("render_fps")
        return float(check_argument("render_fps", said, float, range="in [0.01, 1000]"))
    except ValueError:
        return FRAMES_PER_SECOND
    finally:
        env.close()


def film_episode(
    path: Path, saved: SavedPolicy, environment: EnvironmentSpec, *, seed: int, max_episode_steps: int | None
) -> VideoWriter:
    """Writes a video of the first episode of `evaluation.play.play`. Returns the writer, which knows the length.

    OSError or ValueError if that fails.
    """
    with VideoWriter(path, find_frame_rate(environment)) as video:
        play_episode(
            saved,
            environment,
            episode=0,
            seed=seed,
            max_episode_steps=max_episode_steps,
            render_mode="rgb_array",
            show_frame=lambda frame, _: video.write(frame),
        )
    return video
