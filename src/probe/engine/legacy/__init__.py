"""The legacy era in the engine: sessions, `notifications/cancelled`, tasks of 2025-11-25."""
