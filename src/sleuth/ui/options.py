"""What a run was made of, as plain texts that can be laid side by side."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from sleuth.core.observation import Architecture, Batch, LossCall, Settings, Split
from sleuth.store.reading import Run
from sleuth.views.facts import number

Option = tuple[str, str]


def options_of(file: Path) -> dict[str, str]:
    with Run(file) as run, run.guarded():
        kinds = {kind: next(run.logged(kind.__name__), None) for kind in (Settings, Architecture, LossCall)}
        batch = next((seen for seen in run.logged("Batch") if seen.split is Split.TRAIN), None)
    found: dict[str, str] = {}
    if (settings := kinds[Settings]) is not None:
        found.update(_of_settings(settings))
    if (call := kinds[LossCall]) is not None:
        found.update(_of_loss(call))
    if batch is not None:
        found.update(_of_batch(batch))
    if (architecture := kinds[Architecture]) is not None:
        found.update(_of_architecture(architecture))
    return found


def differing(columns: list[dict[str, str]]) -> list[tuple[str, list[str | None]]]:
    """Names in the order in which they come, with the value of each column; None: it has none."""
    names = dict.fromkeys(name for column in columns for name in column)
    rows = [(name, [column.get(name) for column in columns]) for name in names]
    return [(name, values) for name, values in rows if len(set(values)) > 1]


def _of_settings(settings: Settings) -> Iterator[Option]:
    yield "optimiser", settings.optimiser or "none"
    if settings.lr is not None:
        yield "learning rate", _text(settings.lr)
    yield from ((f"optimiser {name}", _text(value)) for name, value in settings.optimiser_options.items())
    if settings.parameter_dtype:
        yield "dtype of parameters", settings.parameter_dtype
    yield from ((f"version of {name}", str(version)) for name, version in settings.versions.items())


def _of_loss(call: LossCall) -> Iterator[Option]:
    yield "loss", call.name
    yield from ((f"loss {name}", _text(value)) for name, value in call.options.items())


def _of_batch(batch: Batch) -> Iterator[Option]:
    yield "batch size", _text(batch.size)
    for facts in batch.inputs:
        yield f"{facts.path} shape", _text(facts.shape[1:])
        yield f"{facts.path} dtype", facts.dtype
        yield f"{facts.path} range in the first batch", f"{number(facts.statistics.min)} to {number(facts.statistics.max)}"


def _of_architecture(architecture: Architecture) -> Iterator[Option]:
    yield "parameters", f"{sum(p.size for p in architecture.parameters if p.tied_to is None):,}"
    yield "trained parameters", f"{sum(p.size for p in architecture.parameters if p.trainable and p.tied_to is None):,}"
    for layer in architecture.layers:
        if layer.family != "container":
            yield f"layer {layer.path or layer.kind}", f"{layer.kind}({_inside(layer.settings)})"


def _inside(settings: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={_text(value)}" for name, value in settings.items())


def _text(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
