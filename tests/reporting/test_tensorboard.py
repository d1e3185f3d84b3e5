from pathlib import Path

from tensorboardX.proto.event_pb2 import Event

from reporting.tensorboard import TensorboardWriter


def events(folder: Path):
    """Every event of a folder; a record is an 8-byte length, its 4-byte check, the event, its 4-byte check."""
    found = []
    for path in sorted(folder.iterdir(), key=lambda each: each.stat().st_mtime_ns):
        data = path.read_bytes()
        while data:
            size = int.from_bytes(data[:8], "little")
            found.append(Event.FromString(data[12 : 12 + size]))
            data = data[16 + size :]
    return found


def scalars(found):
    return [(event.step, value.tag, value.simple_value) for event in found for value in event.summary.value]


def test_every_finite_number_of_a_row_becomes_a_scalar_of_its_generation(tmp_path):
    writer = TensorboardWriter(tmp_path, 0)
    writer.write({"generation": 1, "sigma": 0.5, "eval_return": float("nan"), "env_steps": 200})
    writer.write({"generation": 2, "sigma": 0.25, "eval_return": 3.0, "env_steps": 400})
    writer.close()
    first = [(1, "sigma", 0.5), (1, "env_steps", 200.0)]
    assert scalars(events(tmp_path)) == [*first, (2, "sigma", 0.25), (2, "eval_return", 3.0), (2, "env_steps", 400.0)]


def test_a_resumed_run_tells_tensorboard_where_it_goes_on(tmp_path):
    for generation in (0, 5):
        writer = TensorboardWriter(tmp_path / str(generation), generation)
        writer.write({"generation": generation + 1, "sigma": 0.5})
        writer.close()
    starts = [event.step for event in events(tmp_path / "5") if event.HasField("session_log")]
    assert starts == [6]
