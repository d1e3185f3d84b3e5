"""Statistics of returns with their confidence intervals."""
