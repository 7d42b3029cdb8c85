"""From the entries of a log to the views of `views.py`, and to the moments that predicates hear of."""
