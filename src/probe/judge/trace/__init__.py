"""The trace of one client: opportunities, queries, findings, and how a rule is registered."""
