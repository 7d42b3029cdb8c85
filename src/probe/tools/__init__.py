"""The tools that clients can call: a module or folder for each toolset, a value for each tool, and their catalogue.

A tool sees its `ToolContext`, or only its arguments when it never waits; it knows nothing of sessions or transports.
"""
