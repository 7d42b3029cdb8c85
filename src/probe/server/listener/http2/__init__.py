"""HTTP/2 by hypercorn; its defects are contained."""
