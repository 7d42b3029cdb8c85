"""What the tests share: an in-memory HTTP client, the official schemas, a running engine."""
