"""The callback that does nothing."""


def nothing(*_values: object) -> None:
    """Stand in for a callback that is not given, or not needed any more."""
