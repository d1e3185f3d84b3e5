"""The protocols and value types that every layer shares; nothing computes here, save deriving random streams."""
