"""One module for each command of `mcp-probe`. Its `command` is what `cli.py` registers.

A module imports the server and its like inside its function: `--version` and `--help` need none of them, and loading
them takes a second.
"""
