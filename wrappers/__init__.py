"""Batch wrappers, valid over every back end; a wrapper is named by the stem of its file."""
