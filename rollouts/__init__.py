"""Environments as batches, the one episode loop, and the engines that evaluate populations."""
