"""Policy files that programs make from other policy files. An existing file is refused before anything is done."""

from pathlib import Path

from hebbes.files.atomic_file import check_place
from hebbes.files.policy_file import SavedPolicy, save_policy
from hebbes.files.weight_file import POLICY_SUFFIX


def check_output(path: Path) -> None:
    """Raises ValueError if no new policy file can be written to the path. Called before any work is done."""
    if path.exists():
        raise ValueError(f"output {path} exists already; choose another")
    check_place("output", path, (POLICY_SUFFIX,))


def write_output(path: Path, saved: SavedPolicy) -> None:
    """Writes the policy. Raises ValueError if the disk refuses."""
    try:
        save_policy(path, saved)
    except OSError as error:
        raise ValueError(f"output {path}: {error.strerror}") from error
