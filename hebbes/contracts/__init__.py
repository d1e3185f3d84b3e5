"""The protocols and value types that every room shares, and the random streams."""
