"""A research toolkit that evolves policies for control tasks: static weights and Hebbian learning rules."""
