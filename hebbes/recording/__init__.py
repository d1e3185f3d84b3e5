"""What a run records while it trains: console, metrics and loggers."""
