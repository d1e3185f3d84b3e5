"""Videos: OpenCV reads back the frames that were written, with their colours."""

import cv2
import numpy as np
import pytest

from reporting.video import VideoWriter

RED, BLUE = (220, 20, 20), (20, 20, 220)


def frame(colour, height=64, width=96):
    return np.full((height, width, 3), colour, dtype=np.uint8)


def test_frames_come_back_in_order_with_rate_size_and_colour(tmp_path, monkeypatch):
    monkeypatch.delenv("DISPLAY", raising=False)
    path = tmp_path / "episode.mp4"
    with VideoWriter(path, fps=25) as video:
        for colour in [RED] * 5 + [BLUE] * 5:
            video.write(frame(colour))
    capture = cv2.VideoCapture(str(path))
    assert capture.get(cv2.CAP_PROP_FPS) == 25
    frames = [capture.read()[1][:, :, ::-1] for _ in range(int(capture.get(cv2.CAP_PROP_FRAME_COUNT)))]
    assert len(frames) == 10
    assert frames[0].shape == (64, 96, 3)
    np.testing.assert_allclose(frames[0].mean(axis=(0, 1)), RED, atol=12)
    np.testing.assert_allclose(frames[9].mean(axis=(0, 1)), BLUE, atol=12)


@pytest.mark.parametrize(
    ("name", "fps", "complaint"),
    [
        ("episode.avi", 30, r"must name an \.mp4 file"),
        ("episode.mp4", 0, "positive and finite, not 0"),
        ("episode.mp4", float("nan"), "positive and finite, not nan"),
        ("missing/episode.mp4", 30, "missing does not exist"),
        ("file/episode.mp4", 30, "file does not exist"),
    ],
)
def test_what_cannot_be_written_is_refused_before_the_first_frame(tmp_path, name, fps, complaint):
    (tmp_path / "file").touch()
    with pytest.raises(ValueError, match=complaint):
        VideoWriter(tmp_path / name, fps)


def test_a_path_that_cannot_be_opened_is_an_error_and_not_a_lost_video(tmp_path):
    with VideoWriter(tmp_path / "episode.mp4", 30) as video:
        (tmp_path / "episode.mp4").mkdir()
        with pytest.raises(OSError, match=r"cannot write .*episode\.mp4"):
            video.write(frame(RED))
    with pytest.raises(ValueError, match="no file can be written there"):
        VideoWriter(tmp_path / "episode.mp4", 30)


@pytest.mark.parametrize(
    "bad", [frame(RED).astype(np.float32), frame(RED)[:, :, 0], frame(RED, height=32), np.zeros((64, 96, 4), np.uint8)]
)
def test_frames_of_another_kind_are_refused(tmp_path, bad):
    with VideoWriter(tmp_path / "episode.mp4", 30) as video:
        video.write(frame(RED))
        with pytest.raises(ValueError, match="a frame must"):
            video.write(bad)
