"""Connections that carry everything both ways, in both eras; an endpoint owns the transport under them."""
