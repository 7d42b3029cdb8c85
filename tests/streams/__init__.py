"""Draft streams as their clients see them: over HTTP and over a pipe, in virtual time."""
