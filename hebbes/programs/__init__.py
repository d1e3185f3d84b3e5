"""What the scripts at the root and `python -m hebbes` call."""
