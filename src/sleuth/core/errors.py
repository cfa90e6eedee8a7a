"""Errors whose message is for the user."""


class UnusableInput(Exception):
    """What was given cannot be used: says what was wrong, what was expected and what to do."""


class Unsupported(Exception):
    """An adapter or a probe cannot do this here; the message is the reason that the report gives."""
