"""Hybrids of evolution and gradients: the updates of their search distributions."""
