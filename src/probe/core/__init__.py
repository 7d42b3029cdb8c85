"""Pure machines: no clock, no randomness, no I/O. Time and ids come in as arguments; what to do comes out as a value.

In every machine the transitions stand in one table and a missing row is the violation.
"""
