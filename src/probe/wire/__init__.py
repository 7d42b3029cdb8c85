"""The shapes of messages: the only code that knows JSON spelling. Pure, without imports that do I/O."""
