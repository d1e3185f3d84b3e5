"""The compiled kernels of the networks."""
