"""Whether a process has been stopped, as by SIGSTOP. It does nothing then, but is not gone."""

from pathlib import Path


def is_stopped(process_id: int) -> bool:
    """Whether this process of this machine is stopped; False where the system (not Linux) does not say."""
    try:
        status = Path(f"/proc/{process_id}/stat").read_text()
    except OSError:
        return False
    return status.rpartition(")")[2].split()[0] == "T"  # the name before it may have brackets and spaces
