"""Rules about lists, and about what is used of them."""
