"""How much memory is free to this process: of the machine, and of every control group that it lies in (Linux).

A container's limit is that of a control group, of version 1 or 2. Pages of files that can be dropped count as free.
"""

import os
from collections.abc import Iterator
from pathlib import Path

_UNLIMITED = 2**60
"""Version 1 has no word for "no limit", only a number beyond any memory."""


def free_memory(root: Path = Path("/")) -> int | None:
    """Bytes that can still be taken, the least of all limits; None where the system does not say.

    `root` is where `proc` and `sys` lie.
    """
    found = [*_of_machine(root), *_of_groups(root)]
    if not found and root == Path("/"):
        found = _installed()
    return max(0, min(found)) if found else None


def _of_machine(root: Path) -> Iterator[int]:
    for line in _lines(root / "proc" / "meminfo"):
        name, _, rest = line.partition(":")
        if name == "MemAvailable":
            yield int(rest.split()[0]) * 1024


def _of_groups(root: Path) -> Iterator[int]:
    """What each group has left that this process is in, directly or through groups within groups."""
    for line in _lines(root / "proc" / "self" / "cgroup"):
        _, controllers, path = line.split(":", 2)
        if controllers not in ("", "memory") and "memory" not in controllers.split(","):
            continue
        version_2 = not controllers
        mount = root / "sys" / "fs" / "cgroup" / ("" if version_2 else "memory")
        names = [name for name in path.split("/") if name not in ("", "..")]
        for depth in range(len(names), -1, -1):  # within a container the path may be that outside, with no such folder
            yield from _left(mount.joinpath(*names[:depth]), version_2)


def _left(group: Path, version_2: bool) -> Iterator[int]:
    """What one group has left; nothing where it has no limit."""
    names = ("memory.max", "memory.current", "inactive_file")
    if not version_2:
        names = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
    limit, used = (_number(group / name) for name in names[:2])
    if limit is None or used is None or limit >= _UNLIMITED:
        return
    counts = dict(line.split(" ", 1) for line in _lines(group / "memory.stat") if " " in line)
    yield limit - used + int(counts.get(names[2], 0))


def _number(path: Path) -> int | None:
    text = "".join(_lines(path)[:1]).strip()
    return int(text) if text.isdecimal() else None  # version 2 says `max` where there is no limit


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text().splitlines()
    except OSError:
        return []


def _installed() -> list[int]:
    """The memory of a system without /proc, used or not."""
    try:
        return [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    except (ValueError, OSError, AttributeError):
        return []


def own_memory() -> int:
    """Bytes that this process alone takes, without pages of files; 0 where the system does not say (Linux does)."""
    for line in _lines(Path("/proc/self/status")):
        if line.startswith("RssAnon:"):
            return int(line.split()[1]) * 1024
    return 0
