"""Streams of messages to clients, and who reads them."""
