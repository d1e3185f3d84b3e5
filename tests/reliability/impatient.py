"""Imported with `--import`: new workers get twelve seconds for their imports, so that one that hangs is soon killed."""

import rollouts.workers

rollouts.workers.START_SECONDS = 12.0
