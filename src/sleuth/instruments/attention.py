"""Who looks at whom: attention weights of every layer and head."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sleuth.core.contract.adapter import Attends
from sleuth.core.contract.inspection import AttentionMap
from sleuth.core.errors import UnusableInput
from sleuth.instruments.given import Given
from sleuth.instruments.panels import panels, picture
from sleuth.instruments.plain import plain
from sleuth.instruments.result import Result

# Labels of longer sequences overlap.
MOST_LABELS = 32
MOST_PANELS = 16


@dataclass(frozen=True, eq=False)
class Attention(Result):
    """`maps` in the order of calls; weights are (samples, heads, queries, keys)."""

    name: str
    maps: tuple[AttentionMap, ...]
    tokens: tuple[tuple[str, ...], ...] | None = None  # for each sample

    @property
    def layers(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(m.path for m in self.maps))

    def __getitem__(self, layer: str) -> np.ndarray:
        return self._of(layer).weights

    def _of(self, layer: str | None) -> AttentionMap:
        found = next((m for m in self.maps if layer in (None, m.path)), None)
        if found is None:
            raise UnusableInput(f"no attention was seen in {layer!r}; it was in {', '.join(self.layers)}.")
        return found

    def entropy(self, layer: str | None = None) -> np.ndarray:
        """For each head, in [0, 1]: 0 looks at one key only, 1 at all alike."""
        weights = self._of(layer).weights.astype(np.float64)
        spread = -(weights * np.log(np.clip(weights, 1e-12, None))).sum(axis=-1) / max(np.log(weights.shape[-1]), 1e-12)
        return spread.mean(axis=(0, 2))

    def to_dict(self) -> dict[str, Any]:
        rows = [{"layer": m.path, "kind": m.kind, "shape": m.weights.shape, "weights": m.weights} for m in self.maps]
        return plain({"name": self.name, "tokens": self.tokens, "layers": rows})

    def plot(self, layer: str | None = None, sample: int = 0, head: int | None = None) -> Any:
        """The heads of one layer; without a name, every layer with its heads averaged, or the only layer's heads."""
        if layer is None and len(self.maps) > 1:
            shown = [(m.path, m.weights[sample].mean(axis=0)) for m in self.maps[:MOST_PANELS]]
            title = f"{self.name}: mean over heads"
        else:
            one = self._of(layer)
            heads = range(one.weights.shape[1]) if head is None else (head,)
            shown = [(f"head {h}", one.weights[sample, h]) for h in heads][:MOST_PANELS]
            title = one.path or self.name
        side = 2.0 if len(shown) > 4 else 3.0
        return panels(len(shown), lambda axes, i: self._draw(axes, *shown[i], sample), title=title, side=side)

    def _draw(self, axes: Any, title: str, weights: np.ndarray, sample: int) -> None:
        picture(axes, weights, title, vmin=0.0)
        words = self.tokens[sample] if self.tokens is not None and sample < len(self.tokens) else None
        queries, keys = weights.shape
        if words is not None and max(queries, keys) <= MOST_LABELS:
            if len(words) == keys:
                axes.set_xticks(range(keys), words, rotation=90, fontsize=5)
            if len(words) == queries:
                axes.set_yticks(range(queries), words, fontsize=5)

    def __str__(self) -> str:
        lines = []
        for m in self.maps:
            _, heads, queries, keys = m.weights.shape
            spread = ", ".join(f"{e:.2f}" for e in Attention(self.name, (m,)).entropy())
            lines.append(f"{m.path or self.name}  {m.kind}  {heads} heads, {queries} × {keys}, spread of each head: {spread}")
        return "\n".join(lines)


def attention(
    model: Any,
    inputs: Any,
    *,
    tokens: Sequence[str] | Sequence[Sequence[str]] | None = None,
    dtype: str | None = None,
    progress: bool | None = None,
) -> Attention:
    """Attention weights of one forward pass: of nn.MultiheadAttention, scaled_dot_product_attention, a softmax that is multiplied
    with values, or `attentions` that the model returns. `tokens`: the words of the samples, or of the only one. A copy runs once,
    in eval mode."""
    from sleuth.views import progress as progress_view

    given = Given(model, inputs, dtype)
    if not isinstance(adapter := given.adapter, Attends):
        raise given.lacks(Attends)
    with progress_view.shown(progress) as tell:
        tell("Running the model once")
        found = adapter.attention(given.model, given.required())
    words = None
    if tokens is not None:
        rows = [tokens] if tokens and isinstance(tokens[0], str) else tokens
        words = tuple(tuple(str(word) for word in row) for row in rows)
    return Attention(given.name, found, words)
