"""Evolution strategies: one file for each method."""
