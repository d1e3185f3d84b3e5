"""Videos: FFmpeg and OpenCV read the frames that were written, in a codec that browsers play."""

import signal
import sys

import av
import cv2
import numpy as np
import pytest

from hebbes.reporting.video import VideoWriter, check_video_path
from tests.python_process import run_python
from tests.recording.events import limit_file_size
from tests.shape_checks import unchecked

RED, BLUE = (220, 20, 20), (20, 20, 220)


def make_frame(color, height=64, width=96):
    return np.full((height, width, 3), color, dtype=np.uint8)


def make_noise(count, size=64):
    rng = np.random.default_rng(0)
    return (rng.integers(0, 256, (size, size, 3), np.uint8) for _ in range(count))


def list_file_names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_frames_come_back_in_order_with_rate_size_and_color(tmp_path, monkeypatch):
    monkeypatch.delenv("DISPLAY", raising=False)
    path = tmp_path / "episode.mp4"
    with VideoWriter(path, fps=25) as video:
        for color in [RED] * 5 + [BLUE] * 5:
            video.write(make_frame(color))
    assert (video.num_frames, video.seconds) == (10, 0.4)
    capture = cv2.VideoCapture(str(path))
    assert capture.get(cv2.CAP_PROP_FPS) == 25
    frames = [capture.read()[1][:, :, ::-1] for _ in range(int(capture.get(cv2.CAP_PROP_FRAME_COUNT)))]
    assert len(frames) == 10
    assert frames[0].shape == (64, 96, 3)
    np.testing.assert_allclose(frames[0].mean(axis=(0, 1)), RED, atol=4)
    np.testing.assert_allclose(frames[9].mean(axis=(0, 1)), BLUE, atol=4)


@pytest.mark.parametrize(
    ("size", "written"), [((64, 96), (64, 96)), ((65, 97), (66, 98)), ((64, 97), (64, 98)), ((1, 1), (2, 2))]
)
def test_browsers_play_the_file_whatever_the_size_of_its_frames(size, written, tmp_path):
    with VideoWriter(tmp_path / "episode.mp4", fps=50) as video:
        for column in range(12):
            shown = make_frame(RED, *size)
            shown[:, -1] = 20 * column, 20, 20
            video.write(shown)
    with av.open(str(tmp_path / "episode.mp4")) as file:
        (stream,) = file.streams
        assert (stream.codec_context.name, stream.codec_context.pix_fmt) == ("h264", "yuv420p")
        assert (stream.codec_context.height, stream.codec_context.width) == written
        assert stream.average_rate == 50 and stream.duration * stream.time_base == pytest.approx(12 / 50)
        decoded = [each.to_ndarray(format="rgb24") for each in file.decode(stream)]
    assert len(decoded) == 12 and decoded[0].shape == (*written, 3)
    if min(size) > 1:
        np.testing.assert_allclose(decoded[0][:, : size[1] - 8].mean(axis=(0, 1)), RED, atol=4)
    data = (tmp_path / "episode.mp4").read_bytes()
    assert data.index(b"moov") < data.index(b"mdat")  # a web page can play it before it has the whole file


def test_what_cannot_be_written_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"^--video must name a \.mp4 or \.gif file"):
        check_video_path("--video", tmp_path / "episode.avi")


@pytest.mark.parametrize("fps", [0, float("nan")])
def test_frames_have_a_rate(tmp_path, fps):
    with pytest.raises(ValueError, match=f"positive and finite, not {fps}"):
        VideoWriter(tmp_path / "episode.mp4", fps)


def test_a_gif_has_at_most_a_hundred_frames_per_second(tmp_path):
    with VideoWriter(tmp_path / "episode.gif", 125) as video:
        video.write(np.zeros((8, 8, 3), np.uint8))
        video.write(np.zeros((8, 8, 3), np.uint8))
    assert video.seconds == 0.02
    assert (tmp_path / "episode.gif").exists()


@pytest.mark.parametrize("kind", ["mp4", "gif"])
def test_a_frame_lasts_an_hour_at_most(kind, tmp_path):
    with VideoWriter(tmp_path / f"episode.{kind}", 1e-12) as video:
        video.write(np.zeros((8, 8, 3), np.uint8))
        video.write(np.zeros((8, 8, 3), np.uint8))
    assert video.seconds == 7200
    assert (tmp_path / f"episode.{kind}").exists()


def test_a_missing_encoder_is_an_error_that_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "path", [])
    monkeypatch.setattr(sys, "path_importer_cache", {})
    monkeypatch.delitem(sys.modules, "av", raising=False)
    with pytest.raises(ValueError, match="--video needs the package av, which is not installed: pip install av"):
        check_video_path("--video", tmp_path / "episode.mp4")


def test_a_path_that_cannot_be_opened_is_an_error_and_not_a_lost_video(tmp_path):
    with (
        pytest.raises(OSError, match=r"cannot write .*episode\.mp4: Is a directory"),
        VideoWriter(tmp_path / "episode.mp4", 30) as video,
    ):
        (tmp_path / "episode.mp4").mkdir()
        video.write(make_frame(RED))
    with pytest.raises(ValueError, match="no file can be written there"):
        check_video_path("--video", tmp_path / "episode.mp4")
    assert list_file_names(tmp_path) == ["episode.mp4"]


def test_what_the_encoder_cannot_take_is_an_error(tmp_path):
    with (
        pytest.raises(OSError, match=r"cannot write .*episode\.mp4: ."),
        VideoWriter(tmp_path / "episode.mp4", 30) as video,
    ):
        video.write(make_frame(RED, height=16_386, width=2))
    assert list_file_names(tmp_path) == []


@pytest.mark.parametrize("count", [10, 24, 80])
def test_a_full_disk_is_an_error_and_leaves_the_old_file(count, tmp_path):
    (tmp_path / "episode.mp4").write_bytes(b"old")
    with (
        limit_file_size(16_384),
        pytest.raises(OSError, match=r"cannot write the video .*episode\.mp4: File too large"),
        VideoWriter(tmp_path / "episode.mp4", 50) as video,
    ):
        for each in make_noise(count):
            video.write(each)
    assert list_file_names(tmp_path) == ["episode.mp4"]
    assert (tmp_path / "episode.mp4").read_bytes() == b"old"


def test_an_episode_that_breaks_off_leaves_the_old_file(tmp_path):
    (tmp_path / "episode.mp4").write_bytes(b"old")
    with pytest.raises(SystemExit), VideoWriter(tmp_path / "episode.mp4", 50) as video:
        for each in make_noise(60):
            video.write(each)
        raise SystemExit(143)  # as after a SIGTERM
    assert list_file_names(tmp_path) == ["episode.mp4"]
    assert (tmp_path / "episode.mp4").read_bytes() == b"old"


@pytest.mark.slow
def test_a_killed_process_leaves_no_file_of_that_name(tmp_path):
    program = (
        "import os, signal, sys\n"
        "from pathlib import Path\n"
        "from hebbes.reporting.video import VideoWriter\n"
        "from tests.reporting.test_video import make_noise\n"
        "with VideoWriter(Path(sys.argv[1]), 50) as video:\n"
        "    for each in make_noise(80):\n"
        "        video.write(each)\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    run_python("-c", program, tmp_path / "episode.mp4", status=-signal.SIGKILL)
    assert "episode.mp4" not in list_file_names(tmp_path)


def test_a_file_that_cannot_be_opened_leaves_the_old_file(tmp_path, monkeypatch):
    def fail(*_):
        raise ValueError("no such encoder")

    (tmp_path / "episode.gif").write_bytes(b"old")
    monkeypatch.setattr("hebbes.reporting.video._PaletteFilter", fail)
    with pytest.raises(ValueError, match="no such encoder"), VideoWriter(tmp_path / "episode.gif", 50) as video:
        video.write(make_frame(RED))
    assert list_file_names(tmp_path) == ["episode.gif"]
    assert (tmp_path / "episode.gif").read_bytes() == b"old"


def test_without_a_frame_there_is_no_file(tmp_path):
    with VideoWriter(tmp_path / "episode.mp4", 30) as video:
        pass
    assert (video.num_frames, list_file_names(tmp_path)) == (0, [])


def test_frames_do_not_pile_up_in_memory(tmp_path):
    with VideoWriter(tmp_path / "episode.mp4", 50) as video:
        for each in make_noise(200, size=128):
            video.write(each)
        (unfinished,) = tmp_path.iterdir()
        so_far = unfinished.stat().st_size
    assert so_far > (tmp_path / "episode.mp4").stat().st_size / 2 > 500_000


@unchecked()
@pytest.mark.parametrize(
    "bad",
    [
        make_frame(RED).astype(np.float32),
        make_frame(RED)[:, :, 0],
        make_frame(RED, height=32),
        np.zeros((64, 96, 4), np.uint8),
        np.zeros((0, 96, 3), np.uint8),
    ],
)
def test_frames_of_another_kind_are_refused(tmp_path, bad):
    with VideoWriter(tmp_path / "episode.mp4", 30) as video:
        video.write(make_frame(RED))
        with pytest.raises(ValueError, match="a frame must"):
            video.write(bad)
