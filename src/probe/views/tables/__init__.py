"""The tables that the dashboard shows: rows made of the views."""
