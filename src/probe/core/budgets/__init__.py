"""Limits on what clients use together: rates, shares, turns, and open files."""
