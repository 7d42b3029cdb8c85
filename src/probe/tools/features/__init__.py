"""Toolset `features`: what a client can show, one feature at a time, for a person who looks at it."""
