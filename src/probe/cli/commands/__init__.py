"""One module for each command of `mcp-probe`. `cli/program.py` loads it by its name and finds its `command`.

A module imports large parts such as the server inside its function: loading them takes a second, and `--version` and
`--help` need none of them.
"""
