"""What every chart is: plain data in the form that plotly draws."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

# Plain dicts, lists, numbers, texts and None: what JSON can hold. No NaN, nothing of NumPy.
Figure = Mapping[str, Any]


@dataclass(frozen=True)
class Chart:
    name: str  # a word for addresses and ids, letters, digits and dashes only: loss, heat-gradient, finding-1
    title: str  # plain text, as are all texts in the figure: whoever puts it into a page escapes it
    figure: Figure  # {"data": [...], "layout": {...}}; no colours of background, grid and text: those are the page's
    note: str = ""  # plain text: how to read it, and what was left out
    group: str = "curves"  # the section it belongs to: a key of CHARTS
    height: int = 320  # pixels: known before it is drawn, so that nothing jumps
