"""Rules about messages of both sides, and about how a session or an era begins."""
