"""What a run records while it goes on: console, metrics and TensorBoard."""
