"""The run of one call: its scope, its outcome, its cancellation, and the context of its request."""
