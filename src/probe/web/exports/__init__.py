"""A log, or its part about one client or one call, as a file for other people and programs."""
