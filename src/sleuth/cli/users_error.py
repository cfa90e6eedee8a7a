"""An exception of the user's own code, told in the user's terms: type, message and the line, not our traceback."""

from sleuth.core.location import Location
from sleuth.core.runtime.place import location_of


def describe(error: BaseException) -> str:
    """`ValueError: the message`, and below it the user's line."""
    message = error.msg if isinstance(error, SyntaxError) else str(error)
    text = f"{type(error).__name__}: {message}" if message else type(error).__name__
    place = _place(error)
    return text if place is None else f"{text}\n  {place.short_file}:{place.line}   {place.text}".rstrip()


def _place(error: BaseException) -> Location | None:
    if isinstance(error, SyntaxError) and error.filename and error.lineno:
        return Location(error.filename, error.lineno, (error.text or "").strip())
    return location_of(error.__traceback__)
