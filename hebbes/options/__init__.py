"""How hebbes is asked: the command line, YAML files and presets."""
