"""What a new check still asks of its author: every TODO that `./dev new-check` wrote, with its line."""

import re
from collections.abc import Iterable
from pathlib import Path

from tests.authoring.naming import shown

# What ends a string or its call.
QUOTES = "'\" ,)"
PROMPT = re.compile(r"\bTODO\b:? *(.*)")


def prompts_left(files: Iterable[Path]) -> list[str]:
    """`file:line: what is asked`, in the order of the files."""
    return [
        f"{shown(file)}:{number}: {found[1].strip(QUOTES)}"
        for file in files
        for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1)
        if (found := PROMPT.search(line))
    ]
