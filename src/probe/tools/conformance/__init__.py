"""Toolset `conformance`: the fixtures that the official conformance suite expects of a server."""
