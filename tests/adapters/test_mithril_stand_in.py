"""The stand-in for Mithril takes what the real library takes: its signatures were recorded from there."""

import inspect
from typing import Any

import pytest

from tests.kits.mithril_kit import STAND_INS, ml, models

RECORDED = (STAND_INS / "mithril_signatures.txt").read_text().splitlines()


def found(path: str) -> Any:
    thing: Any = ml
    for name in path.split("."):
        thing = _flat_graph() if name == "FlatGraph" else getattr(thing, name)
    return thing


def _flat_graph() -> type:
    model = models.Linear(2)
    return type(ml.compile(model, ml.NumpyBackend(), jit=False).flat_graph)


def written(thing: Any) -> str:
    if isinstance(thing, property):
        return "property"
    words, bare = [], False
    for parameter in inspect.signature(thing).parameters.values():
        if parameter.name == "self":
            continue
        if parameter.kind is parameter.KEYWORD_ONLY and not bare and not any(w.startswith("*") for w in words):
            words.append("*")
            bare = True
        stars = {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}.get(parameter.kind, "")
        words.append(f"{stars}{parameter.name}{'=' if parameter.default is not parameter.empty else ''}")
    return f"({', '.join(words)})"


@pytest.mark.parametrize("line", RECORDED)
def test_the_stand_in_has_the_real_signature(line: str) -> None:
    path, signature = line.split(" ", 1)
    assert written(found(path)) == signature
