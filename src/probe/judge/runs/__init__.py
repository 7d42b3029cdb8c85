"""Runs of the judge: a client that is started and watched, a saved log that is read, and what comes of it."""
