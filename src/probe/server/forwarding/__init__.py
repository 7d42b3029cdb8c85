"""Event logs of `mcp-probe stdio --forward`: the forwarder of one process, and the server that collects them."""
