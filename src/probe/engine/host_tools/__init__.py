"""The server's side of tool hosts (docs/tool-hosts.md): connections, their tools, and their dispatches."""
