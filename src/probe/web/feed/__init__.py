"""The dashboard's feed of log entries and table rows."""
