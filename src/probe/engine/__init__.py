"""Calls, tasks, sessions and streams on trio: one nursery and one cancel scope for each call, and all limits."""
