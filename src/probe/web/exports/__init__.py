"""A log, or the part of it that is about one client or one call, as a file for other people and programs."""
