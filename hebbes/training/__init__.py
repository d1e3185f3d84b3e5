"""The life cycle of a training run: prepare, advance, record, save and resume."""
