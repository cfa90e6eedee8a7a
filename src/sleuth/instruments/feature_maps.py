"""What layers make of an input: one picture a channel."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sleuth.core.contract.adapter import Shows
from sleuth.core.contract.inspection import Maps
from sleuth.instruments.given import Given
from sleuth.instruments.panels import flat_planes, numbered, panels, picture
from sleuth.instruments.plain import plain
from sleuth.instruments.result import Result

MOST = 16


@dataclass(frozen=True, eq=False)
class FeatureMaps(Result):
    """One entry for each call of a layer that was asked for; values are (samples, channels, *positions)."""

    name: str
    maps: tuple[Maps, ...]

    def __getitem__(self, path: str) -> np.ndarray:
        return next(m.values for m in self.maps if m.path == path)

    def to_dict(self) -> dict[str, Any]:
        """With statistics of each channel over samples and positions; the values themselves are in `maps`."""
        rows = [{"layer": m.path, "kind": m.kind, "shape": m.values.shape, **_channels(m.values)} for m in self.maps]
        return plain({"name": self.name, "layers": rows})

    def plot(self, layer: str | None = None, sample: int = 0, most: int = MOST) -> Any:
        """The channels of one layer, the first if none is named, for one sample."""
        one = next((m for m in self.maps if m.path == layer), self.maps[0])
        planes = flat_planes(_planes(one.values[sample]))
        shown = planes[:most]
        title = f"{one.path} · {one.kind}: {numbered(len(shown), len(planes), 'channels')}, sample {sample}"
        return panels(len(shown), lambda axes, i: picture(axes, shown[i], str(i)), title=title)

    def __str__(self) -> str:
        lines = []
        for m in self.maps:
            silent = int((_channels(m.values)["max"] <= 0).sum())
            note = f", {silent} channels never above zero" if silent else ""
            lines.append(f"{m.path}  {m.kind}  {m.values.shape}  range [{m.values.min():.3g}, {m.values.max():.3g}]{note}")
        return "\n".join(lines)


def _planes(sample: np.ndarray) -> np.ndarray:
    """Features without positions are one row."""
    return sample[None] if sample.ndim == 1 else sample.T if sample.ndim == 2 and sample.shape[0] == 1 else sample


def _channels(values: np.ndarray) -> dict[str, np.ndarray]:
    axes = tuple(i for i in range(values.ndim) if i != 1) if values.ndim > 1 else ()
    return {"mean": values.mean(axis=axes), "std": values.std(axis=axes), "max": np.atleast_1d(values.max(axis=axes))}


def feature_maps(
    model: Any, inputs: Any, layers: str | Sequence[str] = (), *, dtype: str | None = None, progress: bool | None = None
) -> FeatureMaps:
    """What the named layers put out (patterns such as "layer1.*" too), or every convolution. A copy runs once, in eval mode."""
    from sleuth.views import progress as progress_view

    given = Given(model, inputs, dtype)
    if not isinstance(adapter := given.adapter, Shows):
        raise given.lacks(Shows)
    wanted = (layers,) if isinstance(layers, str) else tuple(layers)
    with progress_view.shown(progress) as tell:
        tell("Running the model once")
        return FeatureMaps(given.name, adapter.maps(given.model, given.required(), wanted))
