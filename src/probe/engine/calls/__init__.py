"""The run of one call: its scope, outcome, cancellation, and the context of its request."""
