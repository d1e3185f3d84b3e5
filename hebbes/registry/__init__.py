"""Names become classes: one table of strings for each kind."""
