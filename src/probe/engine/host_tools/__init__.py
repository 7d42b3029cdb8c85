"""The server's side of tool hosts (docs/tool-hosts.md): who is connected, their tools, their dispatches."""
