"""Connections that carry everything both ways, in both eras; the transport under them is an endpoint's."""
