"""The engine's side of revisions without sessions: each request stands alone and ends with its connection."""
