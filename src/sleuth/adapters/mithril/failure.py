"""What an exception inside a compiled model says, with the layer and the keys that its message leaves out."""

import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sleuth.adapters.common.manual_loop import error_message
from sleuth.adapters.mithril import arrays
from sleuth.adapters.mithril.graph import Node
from sleuth.core.errors import UnusableInput
from sleuth.core.observation import Failure

# Of a message that is about shapes, whichever backend raised it.
SHAPE = re.compile(r"shape|dimension|size|broadcast|aligned|matmul|axis", re.IGNORECASE)
KEY = re.compile(r"^'?(?P<key>[\w.]+)'?$")


def explain(error: Exception, phase: str, node: Node | None = None, values: Mapping[str, Any] | None = None) -> Failure:
    told = error_message.explain(error, phase)
    layer, expected, got, advice, kind = None, told.expected, told.got, told.advice, told.kind
    if isinstance(error, KeyError) and (found := KEY.match(str(error))):
        kind, expected = "key", f"data or parameters with the key '{found['key']}'"
        advice = f"give it: evaluate(params, {{…, '{found['key']}': …}})"
    if isinstance(error, UnusableInput):
        kind = "arguments"
    if node is not None:
        layer = node.layer
        given = _given(node, values or {})
        kind = "shape" if kind == "other" and SHAPE.search(str(error)) else kind
        got = f"{node.formula}({given})"
        advice = _advice(node, values or {}) or advice
    return Failure(
        phase=phase,
        error=type(error).__name__,
        message=str(error),
        kind=kind,
        layer=layer,
        expected=expected,
        got=got,
        advice=advice,
        location=None if told.location is None or _is_librarys(told.location.file) else told.location,
    )


def _is_librarys(file: str) -> bool:
    home = getattr(sys.modules.get("mithril"), "__file__", None)
    return home is not None and Path(file).is_relative_to(Path(home).parent)


def _given(node: Node, values: Mapping[str, Any]) -> str:
    """left='input' (24, 5), right='output_0' (12, 8)"""
    return ", ".join(
        f"{name}='{key}' {_shape(values[key])}" for name, key in node.sources.items() if arrays.is_array(values.get(key))
    )


def _shape(array: Any) -> str:
    return str(tuple(array.shape))


def _advice(node: Node, values: Mapping[str, Any]) -> str | None:
    left, right = (values.get(node.sources.get(name, "")) for name in ("left", "right"))
    if node.formula != "matrix_multiplication" or left is None or right is None or len(right.shape) < 2:
        return None
    return (
        f"'{node.sources['left']}' has {left.shape[-1]} features and {node.layer} takes {right.shape[-2]}: "
        "give parameters made for these data (compile with their shapes, then randomize_params), or data with so many features"
    )
