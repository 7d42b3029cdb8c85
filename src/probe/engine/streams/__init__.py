"""Streams of messages to clients, their readers, and the memory that they take."""
