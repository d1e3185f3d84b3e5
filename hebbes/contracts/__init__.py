"""The protocols and value types that all subpackages share, and the random streams."""
