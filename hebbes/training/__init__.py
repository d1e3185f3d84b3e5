"""The life of a training run: prepare, advance, record, save and resume."""
