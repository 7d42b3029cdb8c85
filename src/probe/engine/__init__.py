"""The trio side: one nursery and one cancel scope per call, tasks that outlive requests, sessions, and their limits."""
