"""Rules about tools, tasks, cancellation, and questions to the client."""
