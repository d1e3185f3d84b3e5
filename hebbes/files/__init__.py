"""The files that hebbes writes and reads; nothing that it reads from one is executed."""
