"""How one call runs: its scope, its outcome, its cancellation, and what a request is known by."""
