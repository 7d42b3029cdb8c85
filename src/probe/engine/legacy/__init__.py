"""The legacy era's side of the engine: sessions, `notifications/cancelled`, tasks of 2025-11-25."""
