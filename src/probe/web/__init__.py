"""HTTP for people and programs beside the protocol: the API, the feed, the dashboard, and files."""
