"""Configuration, the generation loop, policy files and evaluation."""
