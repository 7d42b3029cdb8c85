"""Toolset `features`: one tool for each feature that a client can show to a person."""
