"""The configuration of a run: sections, presets with their YAML files, the command line, and the plan of a run."""
