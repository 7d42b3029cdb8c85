"""What the log shows of one client, kept so that the queries of `trace/` find it."""
