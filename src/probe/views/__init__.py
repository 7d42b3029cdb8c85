"""The event log folded once into values that refer to each other: docs/internals/views.md."""
