"""Playing saved policies, intact and with interventions."""
