"""The zoo: policies that are released with the package, in hebbes/zoo/, which a path `zoo:NAME` names."""

from pathlib import Path

from hebbes.contracts.suggestion import suggest_name

ZOO = Path(__file__).resolve().parent.parent / "zoo"
"""The folder of the released policies."""
PREFIX = "zoo:"
"""What begins a path that names one of them."""


def find_in_zoo(path: Path) -> Path:
    """The file of the released policy that `zoo:NAME` names. Any other path, and one that exists, is returned as it is.

    Raises ValueError for a name that no released policy has.
    """
    if not str(path).startswith(PREFIX) or path.exists():
        return path
    name, files = str(path).removeprefix(PREFIX), {file.stem: file for file in ZOO.glob("*.dat")}
    if name not in files:
        hint = suggest_name(name, list(files)) or ","
        raise ValueError(f"no policy {name!r} in the zoo{hint} known: {', '.join(sorted(files))}")
    return files[name]
