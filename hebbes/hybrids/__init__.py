"""Hybrids of evolution and gradients: TD3, and the methods that train some members of a population by it."""
