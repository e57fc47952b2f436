"""Why a function of a predicate is not called: its caller says where."""


class SignatureError(ValueError):
    """The arguments do not fit; the text says why."""


class NotBuilt(ValueError):
    """Spark accepts these arguments, this package does not."""
