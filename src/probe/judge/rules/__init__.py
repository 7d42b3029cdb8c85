"""The catalogue of rules, and one predicate for each: a module for each group of rules."""
