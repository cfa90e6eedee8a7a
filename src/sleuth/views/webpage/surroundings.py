"""What was trained and on what: layers, versions, settings, and what watching cost."""

import base64
from collections.abc import Iterator, Mapping
from html import escape
from typing import Any

from sleuth.core.report import Report
from sleuth.views.wording import count, duration

WORDS = {"python": "Python", "system": "System", "processors": "Processors", "threads": "Threads", "device": "Device"}


def architecture(report: Report) -> str:
    return _picture(report) + _table(report.facts.get("architecture") or {})


def _picture(report: Report) -> str:
    """As an image: whatever is written in it cannot run."""
    if not report.drawing:
        return ""
    data = base64.b64encode(report.drawing.encode()).decode()
    text = f"the graph of {report.subject}: what feeds what"
    return f'<div class="wide" tabindex="0"><img class="graph" alt="{escape(text)}" src="data:image/svg+xml;base64,{data}"></div>'


def _table(facts: Mapping[str, Any]) -> str:
    layers = facts.get("layers") or []
    if not layers:
        return ""
    head = "".join(f"<th>{name}</th>" for name in ("Layer", "Kind", "Shapes", "Parameters"))
    rows = "".join(_layer(layer) for layer in layers)
    total = sum(layer["parameters"] for layer in layers)
    trainable = sum(layer["trainable"] for layer in layers)
    more = f", of which {len(layers):,} are listed" if facts["count"] > len(layers) else ""
    frozen = f", {total - trainable:,} of them frozen" if trainable < total else ""
    return (
        f"<details><summary>{count(facts['count'], 'layer')}{more} · {count(total, 'parameter')}{frozen}</summary>"
        f'<div class="wide" tabindex="0"><table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div></details>'
    )


def _layer(layer: Mapping[str, Any]) -> str:
    shapes = " ".join("×".join(str(n) for n in shape) or "1" for shape in layer["shapes"])
    parameters = f"{layer['parameters']:,}" if layer["parameters"] else ""
    frozen = " <small>frozen</small>" if layer["trainable"] < layer["parameters"] else ""
    depth = str(layer["path"]).count(".")
    return (
        f'<tr><td style="padding-left:{min(depth, 8)}em">{escape(str(layer["path"]) or "(the model)")}</td>'
        f"<td>{escape(str(layer['kind']))}</td><td>{escape(shapes)}</td><td class=number>{parameters}{frozen}</td></tr>"
    )


def environment(report: Report) -> str:
    rows = "".join(f"<dt>{escape(label)}</dt><dd>{escape(text)}</dd>" for label, text in _known(report) if text)
    return f"<dl>{rows}</dl>" if rows else ""


def _known(report: Report) -> Iterator[tuple[str, str]]:
    facts = report.facts
    for name, version in (facts.get("versions") or {}).items():
        yield str(name), str(version)
    for name, text in (facts.get("machine") or {}).items():
        yield WORDS.get(str(name), str(name)), str(text)
    if facts.get("loss"):
        yield "Loss", str(facts["loss"])
    if facts.get("optimiser"):
        options = facts.get("optimiser_options") or {}
        rate = {} if facts.get("lr") is None else {"lr": facts["lr"]}
        listed = ", ".join(
            f"{name} {value:g}" if isinstance(value, float) else f"{name} {value}" for name, value in {**rate, **options}.items()
        )
        yield "Optimiser", f"{facts['optimiser']}{f' ({listed})' if listed else ''}"


def overhead(report: Report) -> str:
    cost = report.overhead
    if not cost:
        return ""
    share = max(cost["ratio"] - 1, 0) * 100
    texts = [
        f"Watching took {share:.1f} % on top of the training's own time, {duration(report.seconds)} in all.",
        f"{count(int(cost['recorded_steps']), 'step')} of {report.steps:,} were looked at in full"
        + (
            f"; {count(int(cost['dropped_steps']), 'step')} left out because recording fell behind."
            if cost["dropped_steps"]
            else "."
        ),
    ]
    return "".join(f"<p>{escape(text)}</p>" for text in texts)
