"""The engine's part for revisions without sessions: a request stands alone and ends with its connection."""
