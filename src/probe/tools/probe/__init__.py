"""Toolset `probe`: each tool exercises one feature of the protocol by itself."""
