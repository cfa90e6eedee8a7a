"""Whether a check tells people to type torch."""

import ast
import inspect
import sys
from collections.abc import Iterator

from sleuth.adapters import FOREIGN, REMARK
from sleuth.core.check import Check


def speaks_torch(check: Check) -> list[str]:
    """The words of its fixes that only torch knows, remarks in brackets left out."""
    texts = (check.fix, *_own_texts(check))
    return sorted({found[0] for text in texts for found in FOREIGN.finditer(REMARK.sub("", text))})


def _own_texts(check: Check) -> Iterator[str]:
    """What the functions of its file say, joined where a value stands in the middle of it."""
    tree = ast.parse(inspect.getsource(sys.modules[check.run.__module__]))
    for node in ast.walk(tree):
        if isinstance(node, ast.keyword) and node.arg == "fix":
            yield "".join(n.value for n in ast.walk(node.value) if isinstance(n, ast.Constant) and isinstance(n.value, str))
