"""The tools that clients can call: one folder per toolset, one value per tool, and the catalogue that lists them all.

A tool sees its `ToolContext`, or only its arguments when it never waits; it knows nothing of sessions or transports.
"""
