"""Options of the programs, from the command line, YAML files and presets."""
