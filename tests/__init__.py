"""The tests mirror `src`; `support` is what they share."""
