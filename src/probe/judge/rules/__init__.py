"""One predicate for each rule of the catalogue, a module for each of its groups."""
