"""Skills that exercise a client with the skills extension."""
