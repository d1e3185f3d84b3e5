"""Gives new workers twelve seconds to start, so that one that hangs is killed soon. Used with `--import`."""

import hebbes.execution.dispatch

hebbes.execution.dispatch.START_SECONDS = 12.0
