"""Rules about messages of both sides, and what begins a session."""
