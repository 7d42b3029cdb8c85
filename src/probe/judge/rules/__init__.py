"""The catalogue of rules, and a function for each rule and kind of opportunity: docs/internals/judge.md."""
