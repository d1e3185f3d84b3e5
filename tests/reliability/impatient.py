"""Imported with `--import`: new workers get twelve seconds for their imports, so that one that hangs is soon killed."""

import hebbes.execution.process_engine

hebbes.execution.process_engine.START_SECONDS = 12.0
