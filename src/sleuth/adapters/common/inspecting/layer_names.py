"""Which layers of a model are meant, and words for those that cannot be looked at."""

from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from typing import Any

from sleuth.core.contract.inspection import Passage
from sleuth.core.errors import UnusableInput
from sleuth.core.observation import Failure

# Names in a message: more would not be read.
SHOWN = 12
NO_FILTERS = "convolution, so there are no filters to look at."


def require_passage(passed: Passage) -> None:
    if passed.failure is not None:
        raise UnusableInput(in_words(passed.failure))


def in_words(failure: Failure) -> str:
    place = f" in layer {failure.layer}" if failure.layer else ""
    first = failure.message.strip().splitlines()[0] if failure.message.strip() else ""
    odds = f" It takes {failure.expected} and gets {failure.got}." if failure.expected and failure.got else ""
    advice = f" To do: {failure.advice}." if failure.advice else ""
    return (
        f"the forward pass fails{place}: {failure.error}: {first}.{odds}{advice} sleuth.trace(model, inputs) shows the way there."
    )


def layer_named(modules: Iterable[tuple[str, Any]], path: str, wanted: Iterable[str], what: str) -> Any:
    found = dict(modules)
    if path in found:
        return found[path]
    raise UnusableInput(f"the model has no layer {path!r}. {among(list(wanted), what)}")


def layers_wanted(model: str, known: Sequence[str], convolutions: list[str], patterns: Sequence[str]) -> list[str]:
    """Names or patterns such as `layer1.*`; without any, every convolution. `model` is what it is called in a message."""
    if not patterns:
        if not convolutions:
            raise UnusableInput(f"{model} has no convolution; name the layers to look at. {among(list(known), 'layer')}")
        return convolutions
    for pattern in patterns:
        if not any(fnmatchcase(path, pattern) for path in known):
            raise UnusableInput(f"no layer is called {pattern!r}. {among(list(known), 'layer')}")
    return [path for path in known if any(fnmatchcase(path, pattern) for pattern in patterns)]


def among(paths: list[str], what: str) -> str:
    if not paths:
        return f"It has no {what}."
    more = f" and {len(paths) - SHOWN} more" if len(paths) > SHOWN else ""
    return f"Its {what}s: {', '.join(paths[:SHOWN])}{more}."


def chosen_convolution(model: str, known: Sequence[str], layer: str | None, *, last: bool) -> str:
    """The layer that was named, else the first or the last convolution. `model` is what it is called in a message."""
    if layer is not None:
        return layer
    if not known:
        what = "two-dimensional convolution: name the layer whose map is meant." if last else NO_FILTERS
        raise UnusableInput(f"{model} has no {what}")
    return known[-1 if last else 0]
