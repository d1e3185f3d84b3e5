"""Environments as batches: the back ends, the ids, the morphologies and a task of our own."""
