"""The rules as functions, a module for each group: docs/internals/judge.md."""
