"""The sections of a report on runs."""
