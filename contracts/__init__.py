"""The protocols and value types that every layer shares; nothing here computes, save the derivation of random streams."""
