"""Stories that both eras of the protocol tell, each with a client of either era."""
