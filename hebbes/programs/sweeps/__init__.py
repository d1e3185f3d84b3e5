"""Sweeps: trials of one method with different settings, in a storage that several processes share."""
