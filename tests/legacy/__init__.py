"""The legacy era over the wire code, in memory and in virtual time."""
