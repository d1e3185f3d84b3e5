"""The protocols and value types that all rooms share, and the random streams."""
