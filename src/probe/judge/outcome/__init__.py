"""A report against the expectations of a project, against another report, and the exit status of the run."""
