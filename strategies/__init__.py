"""Search distributions; a strategy is named by the stem of its file."""
