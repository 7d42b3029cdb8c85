"""What the specification asks of connections that carry everything both ways."""  # noqa: A005 - it is `tests.pipes`
