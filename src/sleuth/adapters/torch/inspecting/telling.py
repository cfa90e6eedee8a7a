"""Words for what cannot be looked at."""

from collections.abc import Iterable

from torch import nn

from sleuth.core.errors import UnusableInput
from sleuth.core.inspection import Passage
from sleuth.core.observation import Failure

# Names in a message: more would not be read.
SHOWN = 12


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


def layer_named(model: nn.Module, path: str, wanted: Iterable[str], what: str) -> nn.Module:
    modules = dict(model.named_modules(remove_duplicate=False))
    if path in modules:
        return modules[path]
    raise UnusableInput(f"the model has no layer {path!r}. {among(list(wanted), what)}")


def among(paths: list[str], what: str) -> str:
    if not paths:
        return f"It has no {what}."
    more = f" and {len(paths) - SHOWN} more" if len(paths) > SHOWN else ""
    return f"Its {what}s: {', '.join(paths[:SHOWN])}{more}."
