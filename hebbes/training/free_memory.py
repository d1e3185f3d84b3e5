"""The memory that is free for this process: that of the machine, and of every control group that it is in (Linux).

A container's limit is the limit of a control group (cgroup), version 1 or 2. The droppable page cache counts as free.
"""

import os
from collections.abc import Iterator
from pathlib import Path

_UNLIMITED = 2**60
"""Bytes from which a limit means "no limit": version 1 writes a number larger than any memory for it."""


def measure_free_memory(root: Path = Path("/")) -> int | None:
    """Bytes that can still be allocated, the smallest over all limits; None if the system does not say.

    `root` is the folder of `proc` and `sys`.
    """
    found = [*_read_free_memory_of_groups(root)]
    if (available := _read_bytes(root / "proc" / "meminfo", "MemAvailable")) is not None:
        found.append(available)
    if not found and root == Path("/"):
        found = _read_installed_memory()
    return max(0, min(found)) if found else None


def _read_free_memory_of_groups(root: Path) -> Iterator[int]:
    """Free bytes of each group that this process is in, and of the groups around that."""
    for line in _read_lines(root / "proc" / "self" / "cgroup"):
        _, controllers, path = line.split(":", 2)
        version_2 = not controllers
        if not version_2 and "memory" not in controllers.split(","):
            continue
        mount = root / "sys" / "fs" / "cgroup" / ("" if version_2 else "memory")
        names = [name for name in path.split("/") if name not in ("", "..")]
        for depth in range(len(names), -1, -1):  # in a container the path may be that of the host, and not exist
            yield from _read_free_memory_of_group(mount.joinpath(*names[:depth]), version_2)


def _read_free_memory_of_group(group: Path, version_2: bool) -> Iterator[int]:
    """Free bytes of one group; yields nothing if it has no limit."""
    names = ("memory.max", "memory.current", "inactive_file")
    if not version_2:
        names = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
    limit, used = (_read_number(group / name) for name in names[:2])
    if limit is None or used is None or limit >= _UNLIMITED:
        return
    counts = dict(line.split(" ", 1) for line in _read_lines(group / "memory.stat") if " " in line)
    yield limit - used + int(counts.get(names[2], 0))


def _read_bytes(path: Path, name: str) -> int | None:
    """The bytes in a line such as `MemAvailable: 8000000 kB`; None if there is none of this name."""
    for line in _read_lines(path):
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) * 1024
    return None


def _read_number(path: Path) -> int | None:
    text = "".join(_read_lines(path)[:1]).strip()
    return int(text) if text.isdecimal() else None  # version 2 writes `max` for no limit


def _read_lines(path: Path) -> list[str]:
    try:
        return path.read_text().splitlines()
    except OSError:
        return []


def _read_installed_memory() -> list[int]:
    """All bytes of memory, used or free, for systems without /proc."""
    try:
        return [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    except (ValueError, OSError, AttributeError):
        return []


def measure_private_memory(process: int | str = "self") -> int:
    """Bytes of private memory of a process, without pages of files; 0 if it has ended or the system does not say."""
    return _read_bytes(Path(f"/proc/{process}/status"), "RssAnon") or 0
