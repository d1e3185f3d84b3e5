"""The files that hebbes writes and reads. Reading one never executes anything from it."""
