"""The tables of the dashboard: rows made from the views."""
