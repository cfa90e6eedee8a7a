"""The plain facts of a report in words, by stage: shapes, ranges, losses."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sleuth.core.stage import Stage

Fact = tuple[str, str]  # label, text
# More inputs than this are counted instead of listed.
MOST_INPUTS = 4
MANY_ZEROS = 0.05


def told(facts: Mapping[str, Any]) -> dict[Stage, list[Fact]]:
    return {
        Stage.DATA: list(_data(facts)),
        Stage.MODEL: list(_model(facts)),
        Stage.BATCH: list(_one_batch(facts.get("one_batch") or {})),
        Stage.TRAINING: list(_training(facts.get("training") or {})),
        Stage.HYPERPARAMETERS: list(_rate(facts)),
    }


def number(value: float | None) -> str:
    """About three digits, as a person would write them."""
    if value is None:
        return "not finite"
    if value == int(value) and abs(value) < 1e6:
        return f"{int(value):,}"
    if 1e-3 <= abs(value) < 1e4:
        return f"{value:.3f}".rstrip("0").rstrip(".") if abs(value) < 10 else f"{value:.1f}"
    return f"{value:.1e}"


def _data(facts: Mapping[str, Any]) -> Iterator[Fact]:
    for split, read in (facts.get("read") or {}).items():
        part = "" if read["complete"] else " read; there are more"
        yield f"{'Training' if split == 'train' else 'Validation'} data", f"{read['samples']:,} samples{part}"
    inputs = facts.get("inputs") or []
    for array in inputs[:MOST_INPUTS]:
        yield ("Input" if len(inputs) == 1 else f"Input {array['path']}"), _array(array)
    if len(inputs) > MOST_INPUTS:
        yield "Inputs", f"{len(inputs) - MOST_INPUTS} more"
    if target := facts.get("target"):
        yield "Target", _array(target)
    if labels := facts.get("labels"):
        yield "Labels", _labels(list(labels), facts["classes"])


def _array(array: Mapping[str, Any]) -> str:
    text = f"{_shape(array['shape'])} {array['dtype']}"
    if array.get("min") is not None:
        text += f", {_span(number(array['min']), number(array['max']))}"
    return text


def _labels(labels: list[str], classes: Mapping[str, int]) -> str:
    listed = ", ".join(labels) + (", …" if classes["count"] > len(labels) else "")
    if len(labels) > 2 and labels == [str(n) for n in range(len(labels))]:
        listed = f"0 to {classes['count'] - 1}" if classes["count"] == len(labels) else "0, 1, 2, …"
    samples = _span(f"{classes['rarest']:,}", f"{classes['commonest']:,}", same="")
    return f"{classes['count']:,} {'class' if classes['count'] == 1 else 'classes'}: {listed}; {samples} samples each"


def _span(low: str, high: str, same: str = "all ") -> str:
    return f"{same}{low}" if low == high else f"{low} to {high}"


def _shape(shape: Sequence[int]) -> str:
    return f"({', '.join(str(n) for n in shape)}{',' if len(shape) == 1 else ''})"


def _model(facts: Mapping[str, Any]) -> Iterator[Fact]:
    if (parameters := facts.get("parameters")) is not None:
        yield "Parameters", f"{parameters:,}"
    if shapes := facts.get("output_shape"):
        yield "Output", ", ".join(_shape(s) for s in shapes)
    if start := facts.get("initial_loss"):
        guessing = start["expected"] is not None and f" (guessing gives {number(start['expected'])}: {start['how']})"
        yield "Loss at start", number(start["measured"]) + (guessing or "")
    if prefixes := facts.get("prefixes"):
        yield from _grown(prefixes)


def _grown(prefixes: Mapping[str, Any]) -> Iterator[Fact]:
    """The model as it grows: one line a layer."""
    for row in prefixes["rows"]:
        text = f"{row['kind']} {_shape(row['shape'])}"
        if row["not_finite"]:
            text += f", {row['not_finite']:,} values are not finite"
        elif row["std"] is not None:
            text += f", {number(row['mean'])} ± {number(row['std'])}"
            text += f", {row['zeros']:.0%} zeros" if row["zeros"] >= MANY_ZEROS else ""
        if row["read_off"] is not None:
            text += f", a line through it tells {_told(row['read_off'], prefixes['chance'])}"
        yield f"After {row['path']}", text
    if prefixes["failed"]:
        yield "Then", f"the next layer raises {prefixes['failed']}"


def _told(score: float, chance: float) -> str:
    return f"{score:.0%} of the labels (guessing {chance:.0%})" if chance else f"the target with r² {max(score, 0.0):.2f}"


def _one_batch(trial: Mapping[str, Any]) -> Iterator[Fact]:
    if not trial:
        return
    floor = f"; it can reach {number(trial['floor'])}" if trial.get("floor") else ""
    yield "Loss", f"{_course(trial)} in {trial['steps']:,} steps on {trial['samples']:,} samples{floor}"
    if trial.get("tuned_lr") is not None and trial.get("tuned_last") is not None:
        yield "", f"{number(trial['first'])} → {number(trial['tuned_last'])} at a rate of {number(trial['tuned_lr'])}"


def _training(trial: Mapping[str, Any]) -> Iterator[Fact]:
    if not trial:
        return
    yield "Loss", f"{_course(trial)} in {trial['steps']:,} steps"
    if norms := trial.get("gradient_norm"):
        yield "Gradient norm", f"{number(norms[0])} to {number(norms[1])}"
    if metrics := trial.get("validation"):
        yield "Validation", ", ".join(f"{name} {number(value)}" for name, value in metrics.items())


def _course(trial: Mapping[str, Any]) -> str:
    return f"{number(trial['first'])} → {number(trial['last'])}"


def _rate(facts: Mapping[str, Any]) -> Iterator[Fact]:
    if facts.get("optimiser"):
        rate = f", learning rate {number(facts['lr'])}" if facts.get("lr") is not None else ""
        yield "Optimiser", f"{facts['optimiser']}{rate}"
    if facts.get("suggested_lr") is not None:
        yield "Range test", f"suggests a learning rate near {number(facts['suggested_lr'])}"
