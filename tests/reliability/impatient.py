"""Gives new workers twelve seconds to start, so that one that hangs is killed soon. Used with `--import`."""

import hebbes.execution.process_engine

hebbes.execution.process_engine.START_SECONDS = 12.0
