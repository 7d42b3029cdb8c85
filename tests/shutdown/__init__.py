"""Signals to real servers while clients of every kind are there, and none of them does what it should."""
