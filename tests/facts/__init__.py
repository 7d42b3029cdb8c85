"""What the event log tells about each fact that a judge of clients needs."""
