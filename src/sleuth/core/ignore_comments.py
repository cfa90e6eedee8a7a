"""`# sleuth: ignore[name] reason` on the user's own line: a finding that is meant there."""

import re
from dataclasses import dataclass

from sleuth.core.location import Location

ALLOWED = re.compile(r"#\s*sleuth:\s*ignore\[(?P<names>[^\]]*)\]\s*(?P<reason>[^#]*)", re.IGNORECASE)
UNREASONED = "the line says so, without a reason"


@dataclass(frozen=True)
class Allowed:
    reason: str
    location: Location


def allowed_at(location: Location | None, *words: str) -> Allowed | None:
    """`words`: what the check is called, by name and by code."""
    if location is None or (found := ALLOWED.search(location.text)) is None:
        return None
    names = {name.strip().lower() for name in found["names"].split(",")}
    if not names & {word.lower() for word in words}:
        return None
    return Allowed(found["reason"].strip(" :–—-") or UNREASONED, location)
