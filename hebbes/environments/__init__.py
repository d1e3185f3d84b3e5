"""Environments in batches: back ends, ids, morphologies and a task of our own."""
