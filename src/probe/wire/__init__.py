"""What a message looks like: the only code that knows JSON spelling. Pure; imports nothing that does I/O."""
