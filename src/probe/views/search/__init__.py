"""The filter line, such as `tool:echo -status:200`, and the search of the log for exchanges or entries that pass it."""
