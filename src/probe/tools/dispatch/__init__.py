"""Toolset `dispatch`: how long a call may be silent, how long it may last, and what its progress has to do with it."""
