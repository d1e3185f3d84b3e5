"""Evaluation of saved policies, intact or with interventions."""
