"""The trace of one client, and the rules as functions that are asked about it: docs/internals/judge.md."""
