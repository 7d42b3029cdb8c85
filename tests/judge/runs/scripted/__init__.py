"""A client that does everything right, and on demand one thing wrong."""
