"""Parts that the strategies share: samplers, shaping, optimizers, schedules and populations."""
