"""Errors whose message is for the user."""


class UnusableInput(Exception):
    """What was given cannot be used: says what was wrong, what was expected and what to do."""


class Unsupported(Exception):
    """An adapter or a probe cannot do this here; the message is the reason that the report gives."""


class Stopped(Exception):
    """`on_error="stop"`: raised before the optimiser writes. `finding` is what the training was stopped for, if it has a name."""

    def __init__(self, message: str, finding: object = None) -> None:
        super().__init__(message)
        self.finding = finding


class Violated(Stopped):
    """A layer's output is not what `assertions` or `assert_finite` say. Raised by the layer's call."""


class EnoughSteps(SystemExit):
    """The user asked for so many steps of a script; it is left as by `sys.exit()`."""
