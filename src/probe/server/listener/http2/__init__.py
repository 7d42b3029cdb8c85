"""HTTP/2 by hypercorn, with its defects contained."""
