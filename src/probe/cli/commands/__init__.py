"""One module for each command of `mcp-probe`. `cli/program.py` loads it by its name and finds its `command`.

A module imports the server and its like inside its function: `--version` and `--help` need none of them, and loading
them takes a second.
"""
