"""What SECURITY.md promises: who is let in, what browsers are told, and that what a client sends stays text."""
