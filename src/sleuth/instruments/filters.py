"""The filters that a convolution has learned."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from sleuth.core.contract.adapter import Shows
from sleuth.instruments.given import Given
from sleuth.instruments.panels import flat_planes, in_unit_range, numbered, panels, picture
from sleuth.instruments.plain import plain
from sleuth.instruments.result import Result

MOST = 64
# A filter over red, green and blue is a picture by itself.
COLOURED = 3


@dataclass(frozen=True, eq=False)
class Filters(Result):
    """`values` is (filters, channels, *kernel)."""

    layer: str
    kind: str
    values: np.ndarray

    @property
    def norms(self) -> np.ndarray:
        return np.sqrt((self.values.astype(np.float64) ** 2).reshape(len(self.values), -1).sum(axis=1))

    def to_dict(self) -> dict[str, Any]:
        return plain(
            {"layer": self.layer, "kind": self.kind, "shape": self.values.shape, "norms": self.norms, "values": self.values}
        )

    def plot(self, most: int = MOST) -> Any:
        """Over three channels in colour, else the first channel; blue is below zero and red above."""
        shown = self.values[:most]
        coloured = shown.shape[1] == COLOURED and shown.ndim == 4
        limit = float(np.abs(shown).max()) or 1.0

        def draw(axes: Any, number: int) -> None:
            planes = flat_planes(shown[number])
            if coloured:
                picture(axes, in_unit_range(np.moveaxis(planes, 0, -1), -limit, limit), str(number))
            else:
                picture(
                    axes, planes[0], str(number), **({"cmap": "RdBu_r", "vmin": -limit, "vmax": limit} if planes.ndim > 2 else {})
                )

        channel = "" if coloured or shown.shape[1] == 1 else ", channel 0"
        title = f"{self.layer} · {self.kind}: {numbered(len(shown), len(self.values), 'filters')}{channel}"
        return panels(len(shown), draw, title=title, side=0.9)

    def __str__(self) -> str:
        norms = self.norms
        quiet = int((norms < 1e-3 * norms.max()).sum()) if norms.size else 0
        note = f"; {quiet} of them hardly differ from zero" if quiet else ""
        return (
            f"{self.layer} · {self.kind}: {len(self.values)} filters over {self.values.shape[1]} channels, "
            f"kernel {'×'.join(map(str, self.values.shape[2:]))}, norms {norms.min():.3g} to {norms.max():.3g}{note}"
        )


def filters(model: Any, layer: str | None = None) -> Filters:
    """The weights of one convolution, the first if none is named, as numbers and as a picture of its filters."""
    given = Given(model)
    if not isinstance(adapter := given.adapter, Shows):
        raise given.lacks(Shows)
    found = adapter.kernels(given.model, layer)
    return Filters(found.path, found.kind, found.values)
