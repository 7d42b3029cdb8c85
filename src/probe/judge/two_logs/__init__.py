"""Two logs side by side: the requests of each, and the differences between them."""
