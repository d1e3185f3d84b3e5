"""What the strategies are made of: samplers, shaping, optimizers, schedules and populations."""
