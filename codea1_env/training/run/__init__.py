"""What a run leaves behind: its directory, checkpoints, logs, measurements and results."""
