"""Errors for calls of functions in a predicate. The caller adds the position in the text."""


class SignatureError(ValueError):
    """The arguments do not fit the function. The text says why."""


class NotBuilt(ValueError):
    """Spark accepts these arguments, but this package does not."""
