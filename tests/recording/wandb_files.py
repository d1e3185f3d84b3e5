"""The files that wandb writes offline, read back.

A file is a log in LevelDB's format after a header of 7 bytes: blocks of 32 KiB, of records with a checksum of 4 bytes,
a length of 2 and a type of 1 (1: whole; 2, 3, 4: first, middle and last part).
"""

import json
import struct
import time
from pathlib import Path

HEADER, BLOCK, FRAME = 7, 2**15, struct.Struct("<IHB")


def read_records(folder: Path):
    """Every record of the ended runs in a folder, in the order in which they were started.

    wandb's own process writes on after `finish` has returned, so the record that ends a run is waited for.
    """
    records = []
    for path in sorted(folder.glob("wandb/offline-run-*/run-*.wandb"), key=lambda each: each.stat().st_mtime_ns):
        deadline = time.monotonic() + 60
        while not (of_run := _read_log(path)) or not of_run[-1].HasField("exit"):
            assert time.monotonic() < deadline
            time.sleep(0.01)
        records += of_run
    return records


def _read_log(path: Path):
    """The records that a file holds whole."""
    from wandb.proto.wandb_internal_pb2 import Record

    records, data, position, parts = [], path.read_bytes(), HEADER, b""
    while position < len(data):
        if BLOCK - position % BLOCK < FRAME.size:
            position += BLOCK - position % BLOCK
            continue
        if position + FRAME.size > len(data):
            break
        _, length, kind = FRAME.unpack_from(data, position)
        position += FRAME.size + length
        if position > len(data):
            break
        parts += data[position - length : position]
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
