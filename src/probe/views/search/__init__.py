"""The filter line: words that say which exchanges or entries of the log somebody wants, and the search for them."""
