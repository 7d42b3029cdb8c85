"""The pages under `/api`. All of them are read-only."""
