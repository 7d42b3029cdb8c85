"""The event log, the call records that are folded from it, and the redaction of both."""
