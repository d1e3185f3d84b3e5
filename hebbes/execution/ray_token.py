"""The token of a Ray cluster. Without it nobody joins, unless the user has switched authentication off.

Ray unpickles what its peers send, which executes code. So whoever reaches the ports of a cluster without a token can
run anything on its nodes.
"""

import os
from pathlib import Path

ADVICE = "make one with (umask 077; ray get-auth-token --generate), and copy the file to every node"


def require_token() -> None:
    """Switches token authentication on, unless the user has set RAY_AUTH_MODE. Call it before Ray is imported.

    ValueError if there is no token, or if others can read its file.
    """
    if os.environ.setdefault("RAY_AUTH_MODE", "token") != "token" or os.environ.get("RAY_AUTH_TOKEN"):
        return
    path = Path(os.environ.get("RAY_AUTH_TOKEN_PATH") or Path.home() / ".ray" / "auth_token")
    try:
        mode, is_empty = path.stat().st_mode & 0o777, not path.read_bytes().strip()
    except OSError as error:
        raise ValueError(
            f"engine ray needs a token, and {path} cannot be read ({error.strerror}): {ADVICE}; "
            "RAY_AUTH_MODE=disabled joins a cluster that has none"
        ) from error
    if is_empty:
        raise ValueError(f"engine ray needs a token, and {path} is empty: {ADVICE}")
    if mode & 0o077:
        raise ValueError(f"{path} holds Ray's token, and others can read it (mode {mode:04o}): chmod 600 {path}")
