"""The programs that the scripts at the root and `python -m hebbes` run."""
