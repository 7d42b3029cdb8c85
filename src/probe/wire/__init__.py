"""The shapes of messages: the only code that knows JSON spelling. Pure; imports nothing that does I/O."""
