"""What a report means for a project: what it expected, what has changed, and the exit status of the run."""
