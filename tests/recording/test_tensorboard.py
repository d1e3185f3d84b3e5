import pytest

from hebbes.recording.tensorboard import TensorBoard
from tests.recording.events import limit_file_size, list_scalars, read_events


def test_every_finite_number_of_a_row_becomes_a_scalar_of_its_generation(tmp_path):
    writer = TensorBoard(tmp_path, 0)
    writer.write({"generation": 1, "sigma": 0.5, "eval_return": float("nan"), "env_steps": 200})
    writer.write({"generation": 2, "sigma": 0.25, "eval_return": 3.0, "env_steps": 400})
    writer.close()
    first = [(1, "sigma", 0.5), (1, "env_steps", 200.0)]
    assert list_scalars(read_events(tmp_path)) == [
        *first,
        (2, "sigma", 0.25),
        (2, "eval_return", 3.0),
        (2, "env_steps", 400.0),
    ]


def test_a_resumed_run_tells_tensorboard_where_it_goes_on(tmp_path):
    for generation in (0, 5):
        (tmp_path / str(generation)).mkdir()
        writer = TensorBoard(tmp_path / str(generation), generation)
        writer.write({"generation": generation + 1, "sigma": 0.5})
        writer.close()
    starts = [event.step for event in read_events(tmp_path / "5") if event.HasField("session_log")]
    assert starts == [6]


def test_what_the_disk_refuses_is_written_once_there_is_room(tmp_path):
    writer = TensorBoard(tmp_path, 0)
    (path,) = tmp_path.iterdir()
    with limit_file_size(path.stat().st_size + 9):  # room for a part of a record
        for generation in (1, 2):
            with pytest.raises(OSError, match="too large"):
                writer.write({"generation": generation, "sigma": 0.5})
        assert list_scalars(read_events(tmp_path)) == []
    writer.close()
    assert list_scalars(read_events(tmp_path)) == [(1, "sigma", 0.5), (2, "sigma", 0.5)]
