"""What a run is configured by: sections, presets with their YAML files, the command line, and the plan of a run."""
