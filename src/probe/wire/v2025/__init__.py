"""The legacy era: revisions 2025-03-26, 2025-06-18 and 2025-11-25."""
