"""Skills for clients with the skills extension."""
