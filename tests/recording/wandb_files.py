"""The files that wandb writes offline, read back.

A file is a log in LevelDB's format after a header of 7 bytes: blocks of 32 KiB, of records with a checksum of 4 bytes,
a length of 2 and a type of 1 (1: whole; 2, 3, 4: first, middle and last part).
"""

import json
import struct
from pathlib import Path

HEADER, BLOCK, FRAME = 7, 2**15, struct.Struct("<IHB")


def read_records(folder: Path):
    """Every record of the runs in a folder, in the order in which they were started."""
    from wandb.proto.wandb_internal_pb2 import Record

    records = []
    for path in sorted(folder.glob("wandb/offline-run-*/run-*.wandb"), key=lambda each: each.stat().st_mtime_ns):
        data, position, parts = path.read_bytes(), HEADER, b""
        assert data.startswith(b":W&B")
        while position < len(data):
            if BLOCK - position % BLOCK < FRAME.size:
                position += BLOCK - position % BLOCK
                continue
            _, length, kind = FRAME.unpack_from(data, position)
            parts += data[position + FRAME.size : position + FRAME.size + length]
            position += FRAME.size + length
            if kind in (1, 4):
                records.append(Record.FromString(parts))
                parts = b""
    return records


def list_steps(records):
    """The logged values of each step by name, without wandb's own."""
    steps = []
    for record in records:
        if record.HasField("history"):
            items = {item.key or ".".join(item.nested_key): json.loads(item.value_json) for item in record.history.item}
            steps.append({name: value for name, value in items.items() if not name.startswith("_")})
    return steps


def list_runs(records):
    """Id, project, name and options of each start of a run."""
    runs = [record.run for record in records if record.HasField("run")]
    return [
        (
            run.run_id,
            run.project,
            run.display_name,
            {each.key: json.loads(each.value_json) for each in run.config.update},
        )
        for run in runs
    ]
